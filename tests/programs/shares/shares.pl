# shares.pl - subs with known shares of the CPU time, by the thread's own clock: SECONDS, lines to $TRUTH
use strict;
no warnings 'recursion';
use Time::HiRes qw(clock_gettime time CLOCK_THREAD_CPUTIME_ID);
use Digest::SHA qw(sha256);

my %truth;
my $text = join '', map { chr($_ * 7919 % 251) } 0 .. 300_000;

sub p_loop {
	my $t = 0;
	for (my $i = 0; $i < 100_000; $i++) { $t += $i * $i % 7 }
	return $t;
}

sub p_recursion {
	my $n = shift;
	return $n < 2 ? $n : p_recursion($n - 1) + p_recursion($n - 2);
}

sub p_depth {
	my $n = shift;
	return p_depth($n - 1) + 1 if $n;
	my $t = 0;
	for (my $i = 0; $i < 100_000; $i++) { $t += $i & 3 }
	return $t;
}

package Shape {
	sub one {
		my ($self, $i) = @_;
		return $i + $self->{side} & 3;
	}
	sub p_method {
		my ($self, $n) = @_;
		my $t = 0;
		$t += $self->one($_) for 1 .. $n;
		return $t;
	}
}

sub p_closure {
	my $k = 7919;
	my $f = sub { return $_[0] * $k % 251 };
	my $t = 0;
	$t += $f->($_) for 1 .. 20_000;
	return $t;
}

sub p_callee {
	my ($n) = @_;
	my $t = 0;
	$t += $_ & 3 for 1 .. $n;
	return $t;
}

sub p_caller {
	my $t = 0;
	$t += p_callee(1) for 1 .. 20_000;
	return $t;
}

sub p_exception {
	for (1 .. 8_000) {
		eval { die "x\n" };
	}
}

sub p_extension {
	return sha256($text);
}

sub part {
	my ($name, $f, @arguments) = @_;
	my $before = clock_gettime(CLOCK_THREAD_CPUTIME_ID);
	$f->(@arguments);
	$truth{$name} += clock_gettime(CLOCK_THREAD_CPUTIME_ID) - $before;
}

for (my $end = time + $ARGV[0]; time < $end;) {
	part("p_loop", \&p_loop);
	part("p_recursion", \&p_recursion, 17);
	part("p_depth", \&p_depth, 60);
	part("p_method", sub { (bless { side => 3 }, "Shape")->p_method(30_000) });
	part("p_closure", \&p_closure);
	part("p_callee", \&p_callee, 100_000);
	part("p_caller", \&p_caller);
	part("p_exception", \&p_exception);
	part("p_extension", \&p_extension);
}
open my $out, ">>", $ENV{TRUTH} or die;
print $out "$_ $truth{$_}\n" for keys %truth;
