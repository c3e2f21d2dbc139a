#!/bin/bash
# run.sh - profilctl run: the time of a -pg program's threads, as the kernel counts it
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")
gmon=$PWD/tests/lib/gmon.py
for kind in pie no-pie; do
	"${CC:-gcc}" -O1 -fno-inline -falign-functions=16 -g -pg -$kind -pthread -o "$dir/$kind" \
		tests/programs/calls.c || exit 1
done

# Only root may write to this directory. The programs print the CPU time that they used.
mkdir "$dir/here"
cd "$dir/here" || exit 1

rate=(-F 1000)
run() { # ARGS...
	"$ctl" run "${rate[@]}" -- "$@" >"$dir/out" 2>"$dir/said"
	test $? -ne 125 || { cat "$dir/said"; false; }
}

# The samples in gmon.out are those that run reported, and there are some.
conserved() {
	local said

	said=$(grep -oE '[0-9]+ samples; [0-9]+ elsewhere, [0-9]+ lost' "$dir/said" | tr -cd '0-9 ')
	# shellcheck disable=SC2086 # three numbers
	set -- $said
	test "$1" -gt 0 && test "$(python3 "$gmon" gmon.out)" -eq "$1"
}

threads() {
	local kind

	for kind in pie no-pie; do
		rm -f gmon.out
		check "run profiles four threads of a $kind program" run "$dir/$kind" 100000 1 threads
		check "gmon.out of a $kind program has the samples that run reports" conserved
		check "gprof shows every call of a $kind program" grep -qE ' 400000/400000 +call_leaf ' \
			<(gprof -b -q "$dir/$kind")
	done
	rm gmon.out
}

# The program becomes user nobody, which may not write to the directory.
nobody() {
	rm -f gmon.out
	check "run profiles a program that drops its privileges" run "$dir/pie" 1000 1 nobody threads
	check "a program that drops its privileges leaves its calls" grep -qE ' 4000/4000 +call_leaf ' <(gprof -b -q "$dir/pie")
	check "run writes the profile of a program that dropped its privileges to its own directory" grep -q 'without writing .* now in gmon.out$' "$dir/said"
	rm -f gmon.out
	check "run profiles the child of a program that drops its privileges" run "$dir/pie" 1000 1 nobody fork threads kill
	rm -f gmon.out.*
}

killed() {
	local how

	for how in kill term; do
		rm -f gmon.out
		check "run profiles a program that ends by $how" run "$dir/pie" 1000 1 threads $how
		check "a program that ends by $how leaves its calls" grep -qE ' 4000/4000 +call_leaf ' <(gprof -b -q "$dir/pie")
	done
}

export PROFIL_SOCKET=$dir/no-daemon TMPDIR=$dir
threads
nobody
killed
check "run's private daemon leaves no file" test -z "$(find "$dir" -name 'profilctl.*')"

cd "$OLDPWD" || exit 1
daemon_start
cd "$dir/here" || exit 1
rm gmon.out
rate=()
check "run uses the daemon that answers" run "$dir/pie" 1000 1 threads
check "run says what it has written" conserved
daemon_stop
finish
