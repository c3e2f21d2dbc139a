#!/bin/bash
# run.sh - profilctl run: the samples and calls of a -pg program's threads
# shellcheck source=tests/lib/gmon.sh
. "$(dirname "$0")/../../lib/gmon.sh"

# The samples in gmon.out are those that run reported, and there are some.
conserved() {
	local samples

	read -r samples _ < <(reported)
	test "$samples" -gt 0 && test "$(gmon_samples)" -eq "$samples"
}

# gmon.out has N calls of call_leaf().
has_calls() { # PROGRAM N
	gprof -b -q "$1" | grep -E " $2/$2 +call_leaf "
}

threads() {
	local kind

	for kind in pie no-pie; do
		check "run profiles four threads of a $kind program" run "$dir/$kind" 100000 1 threads
		check "gmon.out of a $kind program has the samples that run reports" conserved
		check "gprof shows every call of a $kind program" has_calls "$dir/$kind" 400000
	done
}

# The program becomes user nobody, which may not write to the directory.
drops_privileges() {
	check "run profiles a program that drops its privileges" run "$dir/pie" 1000 1 nobody threads
	check "a program that drops its privileges leaves its calls" has_calls "$dir/pie" 4000
	check "run writes the profile of a program that dropped its privileges to its own directory" grep -q 'without writing .* now in gmon.out$' "$dir/said"
	check "run profiles the child of a program that drops its privileges" run "$dir/pie" 1000 1 nobody fork threads kill
	rm -f gmon.out.*
}

killed() {
	local how

	for how in kill term; do
		check "run profiles a program that ends by $how" run "$dir/pie" 1000 1 threads $how
		check "a program that ends by $how leaves its calls" has_calls "$dir/pie" 4000
	done
}

threads
drops_privileges
killed
check "run's private daemon leaves no file" test -z "$(find "$dir" -name 'profilctl.*')"

run_by_daemon
check "run uses the daemon that answers" run "$dir/pie" 1000 1 threads
check "run says what it has written" conserved
daemon_stop
finish
