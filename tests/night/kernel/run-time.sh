#!/bin/bash
# run-time.sh - profilctl run: the time of a -pg program's threads, as the kernel counts it
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

# The samples in gmon.out are those that run reported, and account for all of the CPU time.
conserved() { # HZ
	local said

	said=$(grep -oE '[0-9]+ samples; [0-9]+ elsewhere, [0-9]+ lost' "$dir/said" | tr -cd '0-9 ')
	# shellcheck disable=SC2086 # three numbers
	set -- $said "$1"
	test "$(python3 "$gmon" gmon.out)" -eq "$1" && near "$(($1 + $2 + $3))" \
		"$(awk -v hz="$4" '{ print $1 * hz }' "$dir/out")" 3
}

threads() { # HZ
	local kind function number

	for kind in pie no-pie; do
		rm -f gmon.out
		check "run profiles four threads of a $kind program" run "$dir/$kind" 100000 3 threads
		check "the samples of a $kind program account for its CPU time" conserved "$1"
		number=0
		for function in tenth two_tenths three_tenths four_tenths; do
			number=$((number + 1))
			check "gprof shows the time of $function in a $kind program" near \
				"$(seconds_of "$dir/$kind" $function)" "$((number * 3))e-1" 10
		done
		check "gprof shows every call of a $kind program" grep -qE ' 400000/400000 +call_leaf ' \
			<(gprof -b -q "$dir/$kind")
	done
	rm gmon.out
	"$dir/pie" 100000 3 threads >"$dir/out"
	printf '   libc counts of the same: %s\n' "$(gprof -b -p "$dir/pie" |
		awk '$NF ~ /tenth/ { printf "%s of %s, ", $3, $NF } $NF == "leaf" { print $4 " of 400000 calls" }')"
}

# The program becomes user nobody, which may not write to the directory.
nobody() {
	rm -f gmon.out
	check "run profiles a program that drops its privileges" run "$dir/pie" 1000 1 nobody threads
	check "a program that drops its privileges leaves its time" near "$(seconds_of "$dir/pie" four_tenths)" 0.4 12
	check "a program that drops its privileges leaves its calls" grep -qE ' 4000/4000 +call_leaf ' <(gprof -b -q "$dir/pie")
	check "run writes the profile of a program that dropped its privileges to its own directory" grep -q 'without writing .* now in gmon.out$' "$dir/said"
	rm -f gmon.out
	check "run profiles the child of a program that drops its privileges" run "$dir/pie" 1000 1 nobody fork threads kill
	rm -f gmon.out.*
	check "the child of a program that drops its privileges leaves its time" near "$(seconds_of "$dir/pie" four_tenths)" 0.4 12
}

killed() {
	local how

	for how in kill term; do
		rm -f gmon.out
		check "run profiles a program that ends by $how" run "$dir/pie" 1000 1 threads $how
		check "a program that ends by $how leaves its time" near "$(seconds_of "$dir/pie" four_tenths)" 0.4 12
		check "a program that ends by $how leaves its calls" grep -qE ' 4000/4000 +call_leaf ' <(gprof -b -q "$dir/pie")
	done
}

export PROFIL_SOCKET=$dir/no-daemon TMPDIR=$dir
threads 1000
nobody
killed
check "run's private daemon leaves no file" test -z "$(find "$dir" -name 'profilctl.*')"

cd "$OLDPWD" || exit 1
daemon_start
cd "$dir/here" || exit 1
rm gmon.out
rate=()
check "run uses the daemon that answers" run "$dir/pie" 1000 3 threads
check "run counts at the daemon's rate" conserved 100
daemon_stop
finish
