# PerlSampler.pm - counts the subs of a program by SIGPROF: own and inclusive samples, file, name
package PerlSampler;
use strict;
use warnings;
use Time::HiRes qw(setitimer ITIMER_PROF);

my (%own, %all);
$SIG{PROF} = sub {
	my ($file, %met) = (caller(0))[1];
	for (my $i = 1; my @frame = caller($i); $i++) {
		next if $frame[3] eq '(eval)' && !defined $frame[6];
		my $function = "$file\t$frame[3]";
		$own{$function}++ if !%met;
		$all{$function}++ if !$met{$function}++;
		$file = $frame[1];
	}
};
setitimer(ITIMER_PROF, 0.002, 0.002);
END {
	setitimer(ITIMER_PROF, 0);
	open(my $out, '>', $ENV{SAMPLES}) or die $!;
	printf $out "%d\t%d\t%s\n", $own{$_} // 0, $all{$_}, $_ for keys %all;
}
1;
