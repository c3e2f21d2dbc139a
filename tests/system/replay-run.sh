#!/bin/bash
# replay-run.sh - profilctl run: what a -pg program leaves behind, however it ends, to the last count
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

if test "${SAN:-}"; then
	skip "profilctl run" "a program that is not sanitized does not load a library that is"
	finish
fi
ctl=$(realpath "$BUILD/profilctl")
gmon=$PWD/tests/system/gmon.py
liar=$PWD/tests/system/programs/liar.py
source=$PWD/tests/system/programs/calls.c
build() { # NAME FLAGS...
	"${CC:-gcc}" -O1 -fno-inline -g -pthread -o "$dir/$1" "$source" "${@:2}"
}
build pie -pg -pie && build no-pie -pg -no-pie && build plain || exit 1
calls=$dir/no-pie

# A pc of it; a bin has four bytes, and at its start and end may be half another's.
inside() { # FUNCTION
	printf '0x%x' $((0x$(nm "$calls" | awk -v name="$1" '$3 == name { print $1 }') + 4))
}

# More ticks than 16 bits hold, and some that are not the program's.
printf '%s 100000\n%s 7\n0x10 5\n' "$(inside leaf)" "$(inside call_leaf)" >"$dir/ticks"
daemon_start
library=$(realpath "$BUILD/libprofil.a")
mkdir "$dir/here"
cd "$dir/here" || exit 1

# Runs it, with its output in $dir/out and our words in $dir/said.
run() { # ARGS...
	"$ctl" run -- "$@" >"$dir/out" 2>"$dir/said" || { cat "$dir/said"; false; }
}

calls_of() { # FUNCTION [FILE]
	gprof -b -p "$calls" ${2:+"$2"} | awk -v name="$1" '$NF == name { print $4 }'
}

# A profile with all ticks and so many calls of leaf.
holds() { # CALLS [FILE=gmon.out]
	test "$(python3 "$gmon" "${2:-gmon.out}") $(calls_of leaf "${2:-gmon.out}")" = "100007 $1" ||
		{ cat "$dir/said"; python3 "$gmon" "${2:-gmon.out}"; calls_of leaf "${2:-gmon.out}"; false; }
}

leaves() { # CALLS ARGS...
	rm -f gmon.out
	run "${@:2}" && holds "$1"
}

says() { # PATTERN
	grep -qE -- "$1" "$dir/said" || { cat "$dir/said"; false; }
}

unsaid() { # PATTERN
	! grep -E -- "$1" "$dir/said"
}

# The ticks are of 10 ms; 7 of them are its caller's.
time_of_leaf() {
	gprof -b -p "$calls" | tee "$dir/flat" | awk '$NF == "leaf" { print $3 }' | grep -qx 1000.00 || { cat "$dir/flat"; false; }
}

whole() {
	local kind

	check "a program's profile is whole" leaves 1000 "$calls" 1000 0 call
	check "... and is said to be" says 'wrote its profile: 100007 ticks; 5 elsewhere, 0 lost$'
	check "gprof reads its time" time_of_leaf
	check "gprof reads who calls whom" sh -c "gprof -b -q '$calls' | tee '$dir/graph' |
		grep -qE ' 1000/1000 +call_leaf ' && grep -qE ' 1/1 +call_leaf ' '$dir/graph'"

	build mfentry -pg -no-pie -mfentry 2>/dev/null || skip "mfentry" "this compiler has none"
	for kind in pie no-pie mfentry; do
		calls=$dir/$kind
		test -x "$calls" || continue
		run "$calls" 250000 0 threads
		check "$kind: four threads lose no call" test "$(calls_of leaf)" = 1000000
		rm gmon.out
		"$calls" 250000 0 threads >"$dir/out"
		printf '   libc, of the same 1000000: %s\n' "$(calls_of leaf)"
	done
	calls=$dir/no-pie
}

ends() {
	local how

	for how in kill term _exit; do
		check "$how: it leaves its profile" leaves 1000 "$calls" 1000 0 call "$how"
		check "$how: ... written by us" says 'ended without writing its profile: 100007 ticks, now in gmon.out$'
	done
	run "$calls" 0 0 kill
	check "killed: by which signal is told" says 'the command was killed by signal 9 \(Killed\)$'
	check "in a directory that is gone" leaves 1000 "$calls" 1000 0 nowhere call
	check "after it has left its terminal" leaves 1000 "$calls" 1000 0 daemon call kill
	rm gmon.out && mkdir gmon.out
	"$ctl" run "$calls" 0 0 kill 2>"$dir/said"
	check "where it cannot be written: status 1" test $? -eq 1
	check "... and what to do" says 'Is a directory; GMON_OUT_PREFIX names another place$'
	rmdir gmon.out
	run env PROFIL_SOCKET="$dir/nobody" "$calls" 1000 0 call
	check "one that reaches no daemon: is told" says 'has calls, but no ticks: it reaches no profild$'
	check "... and has its calls" test "$(calls_of leaf)" = 1000
	rm gmon.out
}

families() {
	local pids

	check "a child has its parent's counts and its own" leaves 2000 "$calls" 1000 0 call fork call
	check "a killed child as well" leaves 2000 "$calls" 1000 0 call fork call kill
	check "a child of a raw clone that gets no memory harms no profile" leaves 1000 "$calls" 1000 0 call clone limit
	check "... and ends as it would" unsaid 'the command '
	GMON_OUT_PREFIX=$dir/here/of run "$calls" 1000 0 pid call fork pid call kill
	mapfile -t pids <"$dir/out"
	check "GMON_OUT_PREFIX: a file for each" test "$(echo of.*)" = "$(printf 'of.%s\n' "${pids[@]::2}" | sort | xargs)"
	check "... the child's" holds 2000 "of.${pids[1]}"
	check "... the parent's" holds 2000 "of.${pids[0]}"
	rm -f of.* gmon.out
	GMON_OUT_PREFIX=of run "$calls" 1000 0 pid call fork exec
	check "what executes another program leaves nothing" test -z "$(ls)"
	run sh -c "'$calls' 1000 0 call; '$dir/plain' 0 0 _exit"
	check "a script's programs are profiled" holds 1000
	rm gmon.out
}

# Runs a command in the background, as $ctl_pid, until file $1 says $2.
begin() { # FILE WORDS ARGS...
	: >"$dir/said"
	: >"$dir/out"
	"$ctl" run "${@:3}" >"$dir/out" 2>"$dir/said" &
	ctl_pid=$!
	until grep -q "$2" "$dir/$1"; do
		kill -0 "$ctl_pid" || return
	done
}

ends_well() {
	wait "$ctl_pid"
	check "$1" test $? -eq 0
}

left_behind() {
	local ctl_pid pid

	mkfifo "$dir/line"
	begin said 'has left 1 process behind' sh -c "read -r line <'$dir/line' && '$calls' 1000 0 call &"
	echo line >"$dir/line"
	ends_well "what the command leaves behind is waited for"
	check "... and profiled" holds 1000
	rm gmon.out
	begin said 'has left 1 process behind' sh -c "read -r line <'$dir/line' &"
	kill -TERM "$ctl_pid"
	ends_well "... until we are told to end"
	echo line >"$dir/line"
	begin out waits sh -c "'$calls' 1000 0 call wait <>'$dir/line' &"
	until says 'has left 1 process behind' >/dev/null; do kill -0 "$ctl_pid" || break; done
	kill -TERM "$ctl_pid"
	ends_well "who runs on then"
	check "... is said to" says 'runs on: 100007 ticks so far, now in gmon.out$'
	check "... and has its profile" holds 1000
	rm gmon.out
	pid=$(sed -n 's/.*(pid \([0-9]*\)) runs on.*/\1/p' "$dir/said")
	echo line >"$dir/line"
	while kill -0 "$pid"; do :; done 2>/dev/null
	rm gmon.out
	trap '' HUP # as nohup does
	begin said 'has left 1 process behind' sh -c "read -r line <'$dir/line' && '$calls' 1000 0 call &"
	trap - HUP
	kill -HUP "$ctl_pid"
	echo line >"$dir/line"
	ends_well "... and not by a terminal that has gone, under nohup"
	check "... but with its profile" says 'wrote its profile: 100007 ticks'
	rm gmon.out
	begin out ready sh -c "echo ready; read -r line <'$dir/line'"
	kill -TERM "$ctl_pid"
	ends_well "a signal is for the command"
	check "... and so it ends" says 'the command was killed by signal 15 '
}

# Of a file's size: one that what is shared exceeds, and one that gmon.out exceeds as well.
limits() {
	check "a file-size limit harms no profile" leaves 1000 sh -c "ulimit -f 32; exec '$calls' 1000 0 call"
	check "... and ends no program" unsaid 'the command '
	run sh -c "ulimit -f 1; exec '$calls' 1000 0 call"
	check "nor does one that gmon.out exceeds" unsaid 'the command '
	check "... which is cut off there" test "$(stat -c %s gmon.out)" = 512
	rm -f gmon.out
}

# Where nobody says who our children are.
blind() {
	if ! unshare --map-root-user --mount sh -c 'mount -t tmpfs none /proc' 2>"$dir/said"; then
		skip "without a list of our children" "$(cat "$dir/said")"
		return
	fi
	# shellcheck disable=SC2016 # another shell's
	unshare --map-root-user --mount sh -c 'mount -t tmpfs none /proc && LD_LIBRARY_PATH=$1 exec "$0" run sh -c "
		sleep 0.3; $2 1000 0 call"' "$ctl" "${library%/*}" "$calls" >"$dir/out" 2>"$dir/said"
	check "without a list of our children: the command is waited for" test $? -eq 0
	check "... and profiled" says 'wrote its profile: 100007 ticks'
	check "... and it is told" says 'no profile of what the command leaves behind'
	rm -f gmon.out
}

# What must not change.
others() {
	run "$dir/plain" 1000 0 call
	check "a program without -pg leaves nothing" test -z "$(ls)"
	check "... and nothing is said" test ! -s "$dir/said"
	run sh -c 'echo /proc/self/fd/*'
	check "a command has our descriptors and no others" test "$(cat "$dir/out")" = "$(sh -c 'echo /proc/self/fd/*')"
	check "... and our limits" sh -c "ulimit -Sn 100; $ctl run -- sh -c 'test \$(ulimit -n) -eq 100'"
	check "... our input and output" test "$(echo word | "$ctl" run -- cat)" = word
	run sh -c 'exit 7'
	check "its status is told" says 'the command exited with status 7$'
	limits
	LD_PRELOAD=libm.so.6 run sh -c 'echo "$LD_PRELOAD"'
	check "what else is preloaded comes first" grep -qE '^libm.so.6:/.*/libprofil.so.1$' "$dir/out"
	cat >"$dir/old.c" <<-'C'
		#include <stdio.h>
		#include <stdint.h>
		#include <unistd.h>
		int main(void)
		{
			static unsigned short counters[8];
			int ret = profil(counters, sizeof(counters), 0x10, 0x10000);
			printf("%d %u\n", ret, counters[0]);
			return 0;
		}
	C
	"${CC:-gcc}" -o "$dir/old" "$dir/old.c" && run "$dir/old"
	check "a program that calls profil gets ours" test "$(cat "$dir/out")" = "0 5"
}

# Who says what is not so spoils his own profile, and nothing else.
liars() {
	local how

	for how in sizes small unsealed file; do
		"$ctl" run python3 "$liar" $how 2>"$dir/said"
		check "memory of wrong $how: status 1" test $? -eq 1
		check "... in a line" says 'has no profile that can be read: Invalid argument$'
		check "... and no file" test -z "$(ls)"
	done
	check "who does not know the word is not heard" run python3 "$liar" key
	check "... and leaves nothing" test -z "$(ls)"
	check "words that mean nothing are not heard" run python3 "$liar" words
	check "... and what was said before them is" test "$(python3 "$gmon" gmon.out)" = 0
	rm -f gmon.out
}

linked() {
	build with -pg -no-pie -L"${library%/*}" -lprofil -Wl,-rpath,"${library%/*}" && calls=$dir/with
	"$calls" 1000 0 call >"$dir/out"
	check "a program that is linked with it needs no run" test "$(calls_of leaf)" = 1000
	rm gmon.out
	PROFIL_SOCKET=$dir/nobody "$calls" 1000 0 call >"$dir/out"
	check "... and without a daemon has its calls" test "$(calls_of leaf)" = 1000
	rm gmon.out
	build static -pg -static "$library" && calls=$dir/static
	check "a static program that has it" run "$calls" 1000 0 call kill
	check "... leaves its profile" test "$(calls_of leaf)" = 1000
	rm gmon.out
	build bare -pg -static
	"$ctl" run "$dir/bare" 0 0 >"$dir/out" 2>"$dir/said"
	check "one that has it not: status 1" test $? -eq 1
	check "... and what to do" says 'did not load libprofil.*link it with -lprofil'
}

whole
ends
families
left_behind
blind
others
liars
linked

"$ctl" run 2>"$dir/said"
check "no command: status 2" test $? -eq 2
"$ctl" run /no/such 2>"$dir/said"
check "no such command: status 1" test $? -eq 1
daemon_stop
finish
