#!/bin/bash
# missing-time.sh - a profile says what it lacks: set-id programs, short threads, what has no room in a table
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")
spin=$dir/spin
user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
${CC:-gcc} -O2 -g -o "$spin" tests/programs/spin.c -ldl -pthread || exit 1
${CC:-gcc} -O2 -g -o "$dir/deeds" tests/programs/deeds.c -pthread || exit 1
${CC:-gcc} -O2 -g -o "$dir/files" tests/programs/files.c || exit 1
${CC:-gcc} -O2 -g -o "$dir/places" tests/programs/places.c || exit 1

json() { # FILTER
	jq -e "$1" "$dir/json" >/dev/null || { jq -c "del(.objects, .functions[8:], .places, .folded)" "$dir/json"; false; }
}

# Seconds of CPU time are LEAST to MOST.
seconds() { # SECONDS LEAST MOST
	awk -v s="$1" -v least="$2" -v most="$3" 'BEGIN { exit !(s != "" && s >= least && s <= most) }' ||
		{ echo "$1 s, not $2 to $3"; return 1; }
}

# $dir/stderr has a line that matches REGEX.
said() { # REGEX
	grep -Eq -- "$1" "$dir/stderr" || { cat "$dir/stderr"; return 1; }
}

silent_about() { # REGEX
	! grep -E -- "$1" "$dir/stderr"
}

# Records a shell that runs $spin and then, so many times, the set-user-ID program, each for SECONDS.
both() { # TIMES SECONDS OPTION...
	# shellcheck disable=SC2016 # another shell's
	"${who[@]}" "$ctl" record -F 999 "${@:3}" -- sh -c '"$0" split 0.6; for i in $(seq "$3"); do "$1" split "$2"; done; exit 5' \
		"$spin" "$dir/setid" "$2" "$1" 2>"$dir/stderr" >"$dir/json"
}

# The program belongs to root, and its user may not read its memory. Like every number here, that of its CPU
# time is the kernel's.
set_id() {
	local missing

	cp "$spin" "$dir/setid"
	chmod 4755 "$dir/setid"
	if [[ ,$(findmnt -no OPTIONS -T "$dir/setid"), == *,nosuid,* ]]; then
		skip "record says that a set-id program is missing" "$dir is mounted with nosuid"
		return
	fi
	who=("${user[@]}")
	both 1 0.6 -f json -o -
	check "record returns the status of a command that runs a set-id program" test $? -eq 5
	check "a set-id program leaves its user's profile" json '.samples.secret == 1 and .samples.hidden_ns == 0'
	check "no sample of a set-id program is in its user's profile" json \
		'all(.functions[]; .object | endswith("/setid") | not)'
	# The shell's child is named "setid" when its execve() has begun.
	check "a set-id program's process has no more than a tick's samples" json \
		'[.groups[] | select(.command == "setid").samples] | add // 0 | . < 5'
	# 600 samples, less or more by half a sample for each time slice: 5 % are 6 deviations at 100 slices.
	check "the program before it is profiled" json '.samples.total > 570 and .samples.total < 660'
	missing=$(jq '(.cpu_ns - .samples.total * .tick_ns) / 1e9' "$dir/json")
	check "record counts the CPU time of a set-id program" seconds "$missing" 0.57 0.66
	check "record says how much CPU time is missing, and that set-id programs ran" said \
		"^profilctl: $(printf %.2f "$missing") s of $(printf %.2f "$(jq '.cpu_ns / 1e9' "$dir/json")") s of CPU time are not in the profile: programs ran that you may not observe \(set-id, or another user's\)$"
	check "record says so in one line" test "$(grep -Ec 'may not observe|not be observed' "$dir/stderr")" -eq 1

	both 1 0.01 -f json -o -
	check "record says that one process left at a set-id program of little CPU time" said \
		'^profilctl: 1 process left the profile at the execution of a program that you may not observe$'
	check "record counts no CPU time as missing then" silent_about 'CPU time'
	both 3 0.01 -f json -o -
	check "record says how many processes left" said \
		'^profilctl: 3 processes left the profile at the execution of a program that you may not observe$'

	both 1 0.01
	check "a text report says that a process left" said '^1 process executed what may not be observed, and left$'
	check "a text report is not repeated by a message" silent_about 'may not observe'
	both 3 0.01
	check "a text report says how many processes left" said '^3 processes executed what may not be observed, and left$'

	who=()
	both 1 0.6 -f json -o -
	check "root profiles a set-id program" json '.samples.secret == 0 and
		([.functions[] | select(.object | endswith("/setid")).samples] | add > 500)'
	check "record tells root of nothing missing" silent_about 'may not observe|CPU time'
}

# A target may have half of a user's entries. Two of four children that use 0.4 s each fit beside their parent.
unfollowed() {
	local pid ctl_pid

	"${user[@]}" "$ctl" record -F 999 -f json -o - -- "$spin" children 0.4 2>"$dir/stderr" >"$dir/json"
	check "record returns the status of a command with children without room" test $? -eq 0
	check "children without room are counted" json '.samples.unfollowed == 2'
	check "the samples are those of the children with room" json '.samples.total > 720 and .samples.total < 920'
	check "record says how many processes had no room" said \
		"^profilctl: 2 processes could not be followed: profild's process table has no more room$"
	check "record says how much CPU time they used" said \
		'^profilctl: 0[.][78][0-9] s of 1[.][56][0-9] s of CPU time are not in the profile: processes could not be followed$'
	"${user[@]}" "$ctl" record -F 999 -- "$spin" children 0.1 2>"$dir/stderr"
	check "a text report says how many processes had no room" said '^2 processes could not be followed$'

	mkfifo "$dir/go"
	# shellcheck disable=SC2016 # another shell's
	"${user[@]}" sh -c 'read -r x; exec "$0" children 0.1' "$spin" <"$dir/go" &
	pid=$!
	exec {go}>"$dir/go"
	until test "$(cat "/proc/$pid/comm")" = sh; do alive "$pid" || break; done
	"${user[@]}" "$ctl" attach -F 999 -f json -o - "$pid" >"$dir/json" 2>"$dir/stderr" &
	ctl_pid=$!
	await_listed "^ *$pid " "$ctl_pid"
	echo >&"$go"
	exec {go}>&-
	wait "$ctl_pid"
	check "attach returns 3 when processes had no room" test $? -eq 3
	check "attach counts children without room" json '.samples.unfollowed == 2'
	wait "$pid"
}

# The CPU time of a process and of the children that it has reaped, in clock ticks.
cpu_ticks() { # PID
	awk '{ print $14 + $15 + $16 + $17 }' "/proc/$1/stat"
}

# A child that ran before attach ends, and its parent's CPU time includes it from then on.
reaped() {
	local shell attach second

	second=$(getconf CLK_TCK)
	mkfifo "$dir/end"
	# The child stops itself until attach observes the shell, and uses 1.2 s of CPU time then.
	# shellcheck disable=SC2016 # another shell's
	sh -c 'sh -c '\''kill -STOP $$; exec "$0" split 1.2'\'' "$1" & echo $! >"$2"; wait; read -r x' - "$spin" "$dir/child" <"$dir/end" &
	shell=$!
	exec {end}>"$dir/end"
	until test -s "$dir/child"; do alive "$shell" || break; done
	"$ctl" attach -F 999 "$shell" >"$dir/said" 2>"$dir/stderr" &
	attach=$!
	await_listed "^ *$shell " "$attach"
	until grep -q '^State:.*stopped' "/proc/$(cat "$dir/child")/status"; do alive "$attach" || break; done
	kill -CONT "$(cat "$dir/child")"
	until test "$(cpu_ticks "$shell")" -ge "$second"; do alive "$attach" || break; done
	kill -INT "$attach"
	wait "$attach"
	check "attach returns 0 for a process whose child ran before" test $? -eq 0
	check "attach says that CPU time of a process that it did not observe is missing" said \
		'^profilctl: 1[.][0-9]+ s of 1[.][0-9]+ s of CPU time are not in the profile: processes ran that were not observed$'
	echo >&"$end"
	exec {end}>&-
	wait "$shell"
}

# Processes of less than a millisecond, most of which end before the timer's next tick, at which -F 50 samples.
short_ones() {
	local line

	# shellcheck disable=SC2016 # another shell's
	"$ctl" record -F 50 -o "$dir/kept" -- sh -c 'i=0; while test $i -lt 1500; do /bin/true; i=$((i + 1)); done' 2>"$dir/stderr"
	check "record -F 50 profiles short processes" test $? -eq 0
	"$ctl" report -f json "$dir/kept" >"$dir/json"
	# What they use after their last tick is charged when they end, and that of those without a tick with others.
	# shellcheck disable=SC2016 # jq's
	check "samples stand for the CPU time of short processes" json \
		'. as $j | .samples.total * .tick_ns + .samples.unseen_ns | . > 0.9 * $j.cpu_ns and . < 1.1 * $j.cpu_ns'
	check "little CPU time of short processes has no sample" json '.samples.unseen_ns < .cpu_ns / 5'
	# shellcheck disable=SC2016 # another shell's
	"$ctl" record -q -F 999 -f json -o "$dir/json" -- sh -c 'i=0; while test $i -lt 100; do /bin/true; i=$((i + 1)); done'
	check "no CPU time ends before its first sample on the CPU clock" json '.samples.unseen_ns == 0'
	"$ctl" record -F 999 -- "$spin" split 0.1 2>"$dir/stderr"
	check "a report says nothing of such threads then" silent_about 'first sample'
}

# The table of an attachment has room for 512 files.
many_files() {
	mkdir "$dir/code"
	"$ctl" record -F 1999 -f json -o "$dir/json" -- "$dir/files" "$dir/code" 700 3 2>"$dir/stderr"
	check "record returns the status of a command with more files than there is room for" test $? -eq 0
	check "samples in more files than there is room for are lost" json \
		'.samples.image_full == .samples.lost and (.samples.lost * 100 / .samples.total | . > 20 and . < 40)'
	check "the other samples are in 512 files" json '[.functions[].object_index] | unique | length | . > 500 and . <= 512'
	check "record says how many samples were lost" said "^profilctl: $(jq .samples.lost "$dir/json") of $(jq .samples.total "$dir/json") samples were lost"
	check "record advises no lower rate for that" silent_about 'lower rate'
	rm -r "$dir/code"
}

# The table of a recording has room for 327680 places. Each fault is a sample at a place of its own.
many_places() {
	local line='samples are counted by file only: the table of places is full; profile for a shorter time, fewer processes, or with --resolution'

	"$ctl" record -e page-faults -o "$dir/kept" -- "$dir/places" "$dir/loads" 400000 2>"$dir/stderr"
	check "record returns the status of a command with more places than there is room for" test $? -eq 0
	check "record says how many places had no room" said '^profilctl: [0-9]+ samples are counted by file only'
	"$ctl" report -f json "$dir/kept" >"$dir/json"
	check "no sample of a full table of places is lost" json \
		'.samples.total >= 400000 and .samples.binned == .samples.total'
	check "the samples of 72320 of 400000 places have no room, and some more" json \
		'.samples.place_full | . >= 72320 and . < 150000'
	check "the samples that have no room are in functions named after files" json \
		'([.functions[] | select(.size == 0).samples] | add) == .samples.place_full'
	line="$(jq .samples.place_full "$dir/json") $line"
	check "a text report says how many samples had no room" grep -qx "$line" <("$ctl" report "$dir/kept")
	rm "$dir/loads"
}

# The table has room for 8192 threads that sleep.
sleepers() {
	local said status line='sleeps are not counted: more threads slept than the table has room for'

	said=$("$ctl" record --off-cpu -o "$dir/kept" -- "$dir/deeds" crowd 10000 2>"$dir/stderr")
	status=$?
	if test "$status" -eq 77; then
		skip "record says how many sleeps had no room" "$said"
		return
	fi
	check "record --off-cpu returns 0 for 10000 threads that sleep at a time" test "$status" -eq 0
	"$ctl" report -f json "$dir/kept" >"$dir/json"
	check "the sleeps of 1808 of 10000 threads have no room, and few more" json '.samples.sleepers_full | . >= 1808 and . < 2300'
	line="$(jq .samples.sleepers_full "$dir/json") $line"
	check "record says how many sleeps had no room" said "^profilctl: $line$"
	check "a text report says how many sleeps had no room" grep -qx "$line" <("$ctl" report "$dir/kept")
}

if ! command -v jq >/dev/null; then
	lacks "profilctl says what a profile lacks" "jq"
	finish
fi
daemon_start --user-children 6
unfollowed
daemon_stop
daemon_start
set_id
reaped
short_ones
many_files
many_places
sleepers
daemon_stop
finish
