#!/bin/bash
# run.sh - profilctl run writes the exact gmon.out of a -pg program, however the program ends
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

if test "${SAN:-}"; then
	skip "profilctl run" "a program that is not sanitized does not load a library that is"
	finish
fi
ctl=$(realpath "$BUILD/profilctl")
gmon=$PWD/tests/lib/gmon.py
liar=$PWD/tests/programs/liar.py
source=$PWD/tests/programs/calls.c
build() { # NAME FLAGS...
	"${CC:-gcc}" -O1 -fno-inline -g -pthread -o "$dir/$1" "$source" "${@:2}"
}
build pie -pg -pie && build no-pie -pg -no-pie && build plain || exit 1
calls=$dir/no-pie

# A pc inside FUNCTION. A bin is four bytes wide: the bins at both ends may be shared with a neighbour.
inside() { # FUNCTION
	printf '0x%x' $((0x$(nm "$calls" | awk -v name="$1" '$3 == name { print $1 }') + 4))
}

# More samples than 16 bits hold, and some outside of the program's text.
printf '%s 100000\n%s 7\n0x10 5\n' "$(inside leaf)" "$(inside call_leaf)" >"$dir/ticks"
rate=50 # differs from the 100 Hz that libc's __profile_frequency() returns
daemon_start --rate $rate
library=$(realpath "$BUILD/libprofil.a")
mkdir "$dir/here"
cd "$dir/here" || exit 1

# Runs a command: its output goes to $dir/out, profilctl's messages to $dir/said, the status to $status.
run() { # ARGS...
	"$ctl" run -- "$@" >"$dir/out" 2>"$dir/said"
	status=$?
	test $status -ne 125 || { cat "$dir/said"; false; }
}

calls_of() { # FUNCTION [FILE]
	gprof -b -p "$calls" ${2:+"$2"} | awk -v name="$1" '$NF == name { print $4 }'
}

# Says whether FILE has all samples and CALLS calls of leaf.
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

# A tick is 20 ms: 100000 samples in leaf are 2000 s. The 7 in call_leaf do not count.
time_of_leaf() {
	gprof -b -p "$calls" | tee "$dir/flat" | awk '$NF == "leaf" { print $3 }' | grep -qx 2000.00 || { cat "$dir/flat"; false; }
}

whole() {
	local kind

	check "a program's profile has every sample and call" leaves 1000 "$calls" 1000 0 call
	check "run reports the samples of the profile" says 'wrote its profile: 100007 samples; 5 elsewhere, 0 lost$'
	check "gprof shows the time of each function" time_of_leaf
	check "gprof shows callers and callees" sh -c "gprof -b -q '$calls' | tee '$dir/graph' |
		grep -qE ' 1000/1000 +call_leaf ' && grep -qE ' 1/1 +call_leaf ' '$dir/graph'"

	build mfentry -pg -no-pie -mfentry 2>/dev/null || skip "mfentry" "this compiler has none"
	for kind in pie no-pie mfentry; do
		calls=$dir/$kind
		test -x "$calls" || continue
		run "$calls" 250000 0 threads
		check "a $kind program with four threads loses no call" test "$(calls_of leaf)" = 1000000
		rm gmon.out
		"$calls" 250000 0 threads >"$dir/out"
		printf '   libc counts %s of the same 1000000 calls\n' "$(calls_of leaf)"
	done
	calls=$dir/no-pie
}

ends() {
	local how

	for how in kill term _exit; do
		leaves 1000 "$calls" 1000 0 call "$how"
		check "a program that ends by $how leaves its profile" holds 1000
		check "run passes on the status of a program that ends by $how" \
			test "$status" = "$(sh -c "'$calls' 0 0 $how" >/dev/null 2>&1; echo $?)"
		check "run writes the profile of a program that ends by $how" \
			says 'ended without writing its profile: 100007 samples, now in gmon.out$'
	done
	cp "$calls" "$dir/"$'a\e[2Jb'
	run "$dir/"$'a\e[2Jb' 0 0
	check "run prints no control character of a program's name" says '^profilctl: a \[2Jb \(pid [0-9]+\) wrote its profile'
	run "$calls" 0 0 kill
	check "run names the signal that killed the command" says 'the command was killed by signal 9 \(Killed\)$'
	check "a program in a removed directory leaves its profile" leaves 1000 "$calls" 1000 0 nowhere call
	check "a program that daemonized leaves its profile" leaves 1000 "$calls" 1000 0 daemon call kill
	rm gmon.out && mkdir gmon.out
	"$ctl" run "$calls" 0 0 kill 2>"$dir/said"
	check "run returns 125 when it cannot write gmon.out" test $? -eq 125
	check "run suggests GMON_OUT_PREFIX when it cannot write gmon.out" \
		says 'Is a directory; GMON_OUT_PREFIX names another place$'
	rmdir gmon.out
	run env PROFIL_SOCKET="$dir/no-daemon" "$calls" 1000 0 call
	check "run says that a program reached no daemon" says 'has calls, but no samples: it reaches no profild$'
	check "a program that reached no daemon has its calls" test "$(calls_of leaf)" = 1000
	rm gmon.out
}

families() {
	local pids

	check "a fork child has its parent's counts and its own" leaves 2000 "$calls" 1000 0 call fork call
	check "the parent of a killed child leaves its profile" leaves 2000 "$calls" 1000 0 call fork call kill
	check "a killed child leaves its profile in a file of its own" holds 2000 "$(echo gmon.out.*)"
	rm gmon.out.*
	# The child does nothing after its fork, so it must not write a copy of its parent's counts.
	check "the parent of an idle child leaves its profile" leaves 2000 "$calls" 1000 0 call idle call
	check "an idle child leaves no file" test "$(echo gmon.out*)" = gmon.out
	check "run does not mention an idle child" unsaid 'ended without writing'
	check "a child of a raw clone without memory does not change its parent's profile" \
		leaves 1000 "$calls" 1000 0 call clone limit
	check "a child of a raw clone without memory exits with 0" unsaid 'the command '
	GMON_OUT_PREFIX=$dir/here/of run "$calls" 1000 0 pid call fork pid call kill
	mapfile -t pids <"$dir/out"
	check "GMON_OUT_PREFIX gives each process a file" test "$(echo of.*)" = "$(printf 'of.%s\n' "${pids[@]::2}" | sort | xargs)"
	check "the child's file has the child's counts" holds 2000 "of.${pids[1]}"
	check "the parent's file has the parent's counts" holds 2000 "of.${pids[0]}"
	rm -f of.* gmon.out
	GMON_OUT_PREFIX=of run "$calls" 1000 0 pid call fork exec
	check "a process that execs another program leaves no file" test -z "$(ls)"
	run sh -c "'$calls' 1000 0 call; '$dir/plain' 0 0 _exit"
	check "run profiles the programs of a script" holds 1000
	rm gmon.out
}

# Runs a command in the background, as $ctl_pid; returns when FILE has WORDS.
begin() { # FILE WORDS ARGS...
	: >"$dir/said"
	: >"$dir/out"
	"$ctl" run "${@:3}" >"$dir/out" 2>"$dir/said" &
	ctl_pid=$!
	await "$ctl_pid" grep -q "$2" "$dir/$1"
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
	ends_well "run waits for a background process of the command"
	check "run profiles a background process of the command" holds 1000
	rm gmon.out
	begin said 'has left 1 process behind' sh -c "read -r line <'$dir/line' &"
	kill -TERM "$ctl_pid"
	ends_well "SIGTERM ends the wait for background processes"
	echo line >"$dir/line"
	begin out waits sh -c "'$calls' 1000 0 call wait <>'$dir/line' &"
	await "$ctl_pid" says 'has left 1 process behind'
	kill -TERM "$ctl_pid"
	ends_well "run ends by SIGTERM before a background process does"
	check "run says that a background process is still running" says 'runs on: 100007 samples so far, now in gmon.out$'
	check "run writes the profile of a process that is still running" holds 1000
	rm gmon.out
	pid=$(sed -n 's/.*(pid \([0-9]*\)) runs on.*/\1/p' "$dir/said")
	echo line >"$dir/line"
	while alive "$pid"; do :; done
	rm gmon.out
	trap '' HUP # as nohup does
	begin said 'has left 1 process behind' sh -c "read -r line <'$dir/line' && '$calls' 1000 0 call &"
	trap - HUP
	kill -HUP "$ctl_pid"
	echo line >"$dir/line"
	ends_well "SIGHUP does not end the wait under nohup"
	check "a background process is profiled after SIGHUP under nohup" says 'wrote its profile: 100007 samples'
	rm gmon.out
	begin out ready sh -c "echo ready; read -r line <'$dir/line'"
	kill -TERM "$ctl_pid"
	wait "$ctl_pid"
	check "run returns 143 when SIGTERM ends the command" test $? -eq 143
	check "run passes SIGTERM on to the command" says 'the command was killed by signal 15 '
}

# RLIMIT_FSIZE: 32 blocks are less than the shared memory of the profile, 1 block less than gmon.out.
limits() {
	check "a profile is whole under a limit of file sizes" leaves 1000 sh -c "ulimit -f 32; exec '$calls' 1000 0 call"
	check "a limit of file sizes does not kill the program" unsaid 'the command '
	run sh -c "ulimit -f 1; exec '$calls' 1000 0 call"
	check "a limit smaller than gmon.out does not kill the program" unsaid 'the command '
	check "gmon.out is cut off at the limit of file sizes" test "$(stat -c %s gmon.out)" = 512
	rm -f gmon.out
}

# Without /proc/self/task/*/children, run cannot list its children.
blind() {
	if ! unshare --map-root-user --mount sh -c 'mount -t tmpfs none /proc' 2>"$dir/said"; then
		skip "run waits for the command without a list of its children" "$(cat "$dir/said")"
		return
	fi
	# shellcheck disable=SC2016 # another shell's
	unshare --map-root-user --mount sh -c 'mount -t tmpfs none /proc && LD_LIBRARY_PATH=$1 exec "$0" run sh -c "
		$2 1000 0 call"' "$ctl" "${library%/*}" "$calls" >"$dir/out" 2>"$dir/said"
	check "run waits for the command without a list of its children" test $? -eq 0
	check "run profiles the command without a list of its children" says 'wrote its profile: 100007 samples'
	check "run says that it cannot profile background processes" says 'no profile of what the command leaves behind'
	rm -f gmon.out
}

# Programs that cannot load libprofil run, and run says why they were not profiled.
foreign() {
	printf '#include <stdio.h>\nint main(void) { puts("ran"); return 3; }\n' >"$dir/foreign.c"
	"${CC:-gcc}" -static -o "$dir/static" "$dir/foreign.c"
	run "$dir/static"
	check "run says that a static program loads no library" says "because it is linked statically "
	printf '#!%s\n' "$dir/static" >"$dir/script"
	chmod 755 "$dir/script"
	run "$dir/script"
	check "run looks at the interpreter of a script" says "because it is linked statically "
	if ! command -v musl-gcc >/dev/null; then
		lacks "a program that is linked with musl runs" "musl-gcc"
		return
	fi
	musl-gcc -o "$dir/musl" "$dir/foreign.c"
	for way in "" "sh -c"; do
		# shellcheck disable=SC2086 # a command and its option
		run $way "$dir/musl"
		check "a program that is linked with musl runs${way:+ in a shell}" test "$(cat "$dir/out")/$status" = ran/3
	done
	run "$dir/musl"
	check "run says that the dynamic linker of musl is not of glibc" says "because its dynamic linker, .*/ld-musl-.*, is not of glibc "
}

# What run must not change for a command.
others() {
	run "$dir/plain" 1000 0 call
	check "a program without -pg leaves no file" test -z "$(ls)"
	check "run says that a program without -pg was not profiled" test "$(cat "$dir/said")" = "profilctl: $dir/plain was not \
profiled: it started no profile, by profil or by -pg (use 'profilctl record')"
	run sh -c 'echo /proc/self/fd/*'
	check "a command inherits run's descriptors and no others" test "$(cat "$dir/out")" = "$(sh -c 'echo /proc/self/fd/*')"
	check "a command inherits run's limits" sh -c "ulimit -Sn 100; $ctl run -- sh -c 'test \$(ulimit -n) -eq 100'"
	check "a command has run's input and output" test "$(echo word | "$ctl" run -- cat)" = word
	run sh -c 'exit 7'
	check "run reports the command's exit status" says 'the command exited with status 7$'
	check "run returns the command's exit status" test $status -eq 7
	limits
	foreign
	LD_PRELOAD=libm.so.6 run sh -c 'echo "$LD_PRELOAD"'
	check "the user's LD_PRELOAD comes before libprofil" grep -qE '^libm.so.6:/.*/libprofil.so.1$' "$dir/out"
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
	check "a program that calls profil() gets libprofil's" test "$(cat "$dir/out")" = "0 5"
	check "run prints nothing about a program that calls profil()" test ! -s "$dir/said"
}

# A command that sends run false messages spoils its own profile, and nothing else.
liars() {
	local how

	for how in sizes small unsealed file; do
		"$ctl" run python3 "$liar" $how 2>"$dir/said"
		check "run returns 125 for invalid shared memory ($how)" test $? -eq 125
		check "run reports invalid shared memory ($how)" says 'has no profile that can be read: Invalid argument$'
		check "run writes no file of invalid shared memory ($how)" test -z "$(ls)"
	done
	check "run ignores a message with the wrong key" run python3 "$liar" key
	check "run writes no file for a message with the wrong key" test -z "$(ls)"
	run python3 "$liar" stopped
	check "a message with the wrong key is dropped before run receives it" test "$status" -eq 0
	check "run ignores unknown messages" run python3 "$liar" words
	check "run keeps what was announced before unknown messages" test "$(python3 "$gmon" gmon.out)" = 0
	rm -f gmon.out
}

linked() {
	build with -pg -no-pie -L"${library%/*}" -lprofil -Wl,-rpath,"${library%/*}" && calls=$dir/with
	"$calls" 1000 0 call >"$dir/out"
	check "a program linked with libprofil is profiled without run" test "$(calls_of leaf)" = 1000
	rm gmon.out
	PROFIL_SOCKET=$dir/no-daemon "$calls" 1000 0 call >"$dir/out"
	check "a program linked with libprofil counts calls without a daemon" test "$(calls_of leaf)" = 1000
	rm gmon.out
	build static -pg -static "$library" && calls=$dir/static
	run "$calls" 1000 0 call kill
	check "run returns 137 for a static program that is killed" test $status -eq 137
	check "a killed static program with libprofil leaves its profile" test "$(calls_of leaf)" = 1000
	rm gmon.out
	"$calls" 1000 0 call write rename call >"$dir/out"
	check "write_profiling() of a static program writes the counts so far" test "$(calls_of leaf gmon.first)" = 1000
	check "write_profiling() does not stop the counting" test "$(calls_of leaf)" = 2000
	rm gmon.out gmon.first
	build bare -pg -static
	"$ctl" run "$dir/bare" 0 0 >"$dir/out" 2>"$dir/said"
	check "run returns the status of a static program without libprofil" test $? -eq 0
	check "run tells how to link a static program with libprofil" says 'did not load libprofil.*link it with -lprofil'
}

# What a program asks of its own profile.
controls() {
	run "$calls" 1000 0 call mcleanup rename call
	check "a program's own _mcleanup() writes the profile" test "$(calls_of leaf gmon.first)" = 1000
	check "exit() writes no second profile after _mcleanup()" test "$(echo gmon.*)" = gmon.first
	rm gmon.first
	run "$calls" 0 0 frequency
	check "__profile_frequency() returns the daemon's rate" test "$(head -n 1 "$dir/out")" = "$rate"
	run env PROFIL_SOCKET="$dir/no-daemon" "$calls" 0 0 frequency
	check "__profile_frequency() returns libc's rate without a daemon" test "$(head -n 1 "$dir/out")" = 100
	rm gmon.out
}

whole
ends
controls
families
left_behind
blind
others
liars
linked

"$ctl" run 2>"$dir/said"
check "run without a command returns 2" test $? -eq 2
"$ctl" run /no/such 2>"$dir/said"
check "run returns 127 when the command does not exist" test $? -eq 127
"$ctl" run /etc/passwd 2>"$dir/said"
check "run returns 126 when the command cannot be executed" test $? -eq 126
"$ctl" run -F nonsense true 2>"$dir/said"
check "run returns 2 for an invalid option" test $? -eq 2
daemon_stop
finish
