# functions.pl - a Perl program whose lines name the sub that executes them
use strict; # main::BEGIN
use warnings; # main::BEGIN

package Worker;
sub new { return bless {}, shift }
sub method {
	my $self = shift; # Worker::method
	return main::recursive(5); # Worker::method
}

package main;
sub inner {
	my $n = shift; # main::inner
	my $total = 0; # main::inner
	for my $i (0 .. $n) { # main::inner
		$total += $i * $i % 7; # main::inner
	}
	return $total; # main::inner
}

sub recursive {
	my $depth = shift; # main::recursive
	return $depth ? recursive($depth - 1) + 1 : inner(20000); # main::recursive
}

sub outer {
	my $end = times() + 1; # main::outer
	my $worker = Worker->new; # main::outer
	while (times() < $end) { # main::outer
		$worker->method(); # main::outer
	}
}

my $unnamed = sub {
	my $total = 0; # main::__ANON__
	for (1 .. 1000000) { # main::__ANON__
		$total ^= $_; # main::__ANON__
	}
};

# Is entered so often that some samples are before its first statement, or behind its last.
sub small {
	my ($n) = @_; # main::small
	return $n & 3; # main::small
}

sub often {
	my $end = times() + 0.5; # main::often
	while (times() < $end) { # main::often
		small($_) for 1 .. 10000; # main::often
	}
}

outer(); # <main>
often(); # <main>
$unnamed->(); # <main>
eval 'my $total = 0; for (1 .. 1000000) { $total += $_ }'; # <main>
