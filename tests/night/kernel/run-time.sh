#!/bin/bash
# run-time.sh - profilctl run: the time of a -pg program's threads, as the kernel counts it
# shellcheck source=tests/lib/gmon.sh
. "$(dirname "$0")/../../lib/gmon.sh"

# Prints gprof's seconds of a function.
seconds_of() { # PROGRAM FUNCTION
	gprof -b -p "$1" | awk -v name="$2" '$NF == name { print $3 }'
}

near() { # IS WANTED PERCENT
	awk -v is="$1" -v want="$2" -v percent="$3" 'BEGIN {
		d = is - want
		if (d > want * percent / 100 || -d > want * percent / 100) {
			print is " is not " want
			exit 1
		}
	}'
}

# All samples, at HZ, account for the CPU time that the program used.
accounted() { # HZ
	local here elsewhere lost

	read -r here elsewhere lost < <(reported)
	near $((here + elsewhere + lost)) "$(awk -v hz="$1" '{ print $1 * hz }' "$dir/out")" 3
}

# FAIL when run does not profile the program.
profiled() { # ARG...
	run "$@" || fail "run $*" "$(cat "$dir/said")"
}

threads() {
	local kind function number

	for kind in pie no-pie; do
		profiled "$dir/$kind" 100000 3 threads
		check "the samples of a $kind program account for its CPU time" accounted 1000
		number=0
		for function in tenth two_tenths three_tenths four_tenths; do
			number=$((number + 1))
			check "gprof shows the time of $function in a $kind program" near \
				"$(seconds_of "$dir/$kind" $function)" "$((number * 3))e-1" 10
		done
	done
	rm gmon.out
	"$dir/pie" 100000 3 threads >"$dir/out"
	printf '   libc counts of the same: %s\n' "$(gprof -b -p "$dir/pie" |
		awk '$NF ~ /tenth/ { printf "%s of %s, ", $3, $NF } $NF == "leaf" { print $4 " of 400000 calls" }')"
}

# The last run's program has left the time of one second of its threads.
leaves_time() { # WHAT
	check "$1 leaves its time" near "$(seconds_of "$dir/pie" four_tenths)" 0.4 12
}

# The program becomes user nobody, which may not write to the directory.
drops_privileges() {
	profiled "$dir/pie" 1000 1 nobody threads
	leaves_time "a program that drops its privileges"
	profiled "$dir/pie" 1000 1 nobody fork threads kill
	leaves_time "the child of a program that drops its privileges"
	rm -f gmon.out.*
}

killed() {
	local how

	for how in kill term; do
		profiled "$dir/pie" 1000 1 threads $how
		leaves_time "a program that ends by $how"
	done
}

threads
drops_privileges
killed
run_by_daemon
profiled "$dir/pie" 1000 3 threads
check "run counts at the daemon's rate" accounted 100
daemon_stop
finish
