#!/bin/bash
# kernel-run.sh - profilctl run: the time of a -pg program's threads, as the kernel counts it
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

ctl=$(realpath "$BUILD/profilctl")
gmon=$PWD/tests/system/gmon.py
for kind in pie no-pie; do
	"${CC:-gcc}" -O1 -fno-inline -falign-functions=16 -g -pg -$kind -pthread -o "$dir/$kind" \
		tests/system/programs/calls.c || exit 1
done

# In a directory that only its owner may write to. The programs say what CPU time they took.
mkdir "$dir/here"
cd "$dir/here" || exit 1

rate=(-F 1000)
run() { # ARGS...
	"$ctl" run "${rate[@]}" -- "$@" >"$dir/out" 2>"$dir/said" || { cat "$dir/said"; false; }
}

# The seconds that gprof finds in a function.
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

# What was said of the ticks is what is in the file, and all of the CPU time.
conserved() { # HZ
	local said

	said=$(grep -oE '[0-9]+ ticks; [0-9]+ elsewhere, [0-9]+ lost' "$dir/said" | tr -cd '0-9 ')
	# shellcheck disable=SC2086 # three numbers
	set -- $said "$1"
	test "$(python3 "$gmon" gmon.out)" -eq "$1" && near "$(($1 + $2 + $3))" \
		"$(awk -v hz="$4" '{ print $1 * hz }' "$dir/out")" 3
}

threads() { # HZ
	local kind function number

	for kind in pie no-pie; do
		rm -f gmon.out
		check "$kind: four threads" run "$dir/$kind" 100000 3 threads
		check "$kind: all ticks are there" conserved "$1"
		number=0
		for function in tenth two_tenths three_tenths four_tenths; do
			number=$((number + 1))
			check "$kind: the time of $function" near \
				"$(seconds_of "$dir/$kind" $function)" "$((number * 3))e-1" 10
		done
		check "$kind: no call is lost" grep -qE ' 400000/400000 +call_leaf ' \
			<(gprof -b -q "$dir/$kind")
	done
	rm gmon.out
	"$dir/pie" 100000 3 threads >"$dir/out"
	printf '   libc, of the same: %s\n' "$(gprof -b -p "$dir/pie" |
		awk '$NF ~ /tenth/ { printf "%s of %s, ", $3, $NF } $NF == "leaf" { print $4 " of 400000 calls" }')"
}

# A program that another user must not keep from being profiled.
nobody() {
	rm -f gmon.out
	check "one that drops its privileges" run "$dir/pie" 1000 1 nobody threads
	check "... leaves its time" near "$(seconds_of "$dir/pie" four_tenths)" 0.4 12
	check "... and its calls" grep -qE ' 4000/4000 +call_leaf ' <(gprof -b -q "$dir/pie")
	check "... where we were started" grep -q 'without writing .* now in gmon.out$' "$dir/said"
	rm -f gmon.out
	check "its child" run "$dir/pie" 1000 1 nobody fork threads kill
	check "... leaves its time" near "$(seconds_of "$dir/pie" four_tenths)" 0.4 12
}

killed() {
	local how

	for how in kill term; do
		rm -f gmon.out
		check "$how" run "$dir/pie" 1000 1 threads $how
		check "$how: it leaves its time" near "$(seconds_of "$dir/pie" four_tenths)" 0.4 12
		check "$how: ... and its calls" grep -qE ' 4000/4000 +call_leaf ' <(gprof -b -q "$dir/pie")
	done
}

export PROFIL_SOCKET=$dir/nobody TMPDIR=$dir
threads 1000
nobody
killed
check "nothing is left of our daemon" test -z "$(find "$dir" -name 'profilctl.*')"

cd "$OLDPWD" || exit 1
daemon_start
cd "$dir/here" || exit 1
rm gmon.out
rate=()
check "with a daemon that is there" run "$dir/pie" 1000 3 threads
check "... and its rate" conserved 100
daemon_stop
finish
