#!/bin/bash
# missing.sh - a profile says what it lacks: set-id programs, short threads, what has no room in a table
# shellcheck source=tests/lib/missing.sh
. "$(dirname "$0")/../../lib/missing.sh"

silent_about() { # REGEX
	! grep -E -- "$1" "$dir/stderr"
}

# Like every number here, that of the set-user-ID program's CPU time is the kernel's.
set_id() {
	local missing

	set_id_make "record says that a set-id program is missing" || return
	who=("${user[@]}")
	record_set_id 1 0.6 -f json -o -
	check "record returns the status of a command that runs a set-id program" test $? -eq 5
	check "a set-id program leaves its user's profile" json '.samples.secret == 1 and .samples.hidden_ns == 0'
	check "no sample of a set-id program is in its user's profile" json \
		'all(.functions[]; .object | endswith("/setid") | not)'
	missing=$(jq '(.cpu_ns - .samples.total * .tick_ns) / 1e9' "$dir/json")
	check "record says how much CPU time is missing, and that set-id programs ran" said \
		"^profilctl: $(printf %.2f "$missing") s of $(printf %.2f "$(jq '.cpu_ns / 1e9' "$dir/json")") s of CPU time are not in the profile: programs ran that you may not observe \(set-id, or another user's\)$"
	check "record says so in one line" test "$(grep -Ec 'may not observe|not be observed' "$dir/stderr")" -eq 1

	record_set_id 1 0.01 -f json -o -
	check "record says that one process left at a set-id program of little CPU time" said \
		'^profilctl: 1 process left the profile at the execution of a program that you may not observe$'
	check "record counts no CPU time as missing then" silent_about 'CPU time'
	record_set_id 3 0.01 -f json -o -
	check "record says how many processes left" said \
		'^profilctl: 3 processes left the profile at the execution of a program that you may not observe$'

	record_set_id 1 0.01
	check "a text report says that a process left" said '^1 process executed what may not be observed, and left$'
	check "a text report is not repeated by a message" silent_about 'may not observe'
	record_set_id 3 0.01
	check "a text report says how many processes left" said '^3 processes executed what may not be observed, and left$'

	who=()
	record_set_id 1 0.6 -f json -o -
	check "root profiles a set-id program" json '.samples.secret == 0 and
		([.functions[] | select(.object | endswith("/setid")).samples] | add > 0)'
	check "record tells root of nothing missing" silent_about 'may not observe|CPU time'
}

file_capability() {
	file_capability_make "record says that a program with file capabilities is missing" || return
	who=("${user[@]}")
	record_set_id 1 0.6 -f json -o -
	check "record returns the status of a command that runs a program with file capabilities" test $? -eq 5
	check "a program with file capabilities leaves its user's profile" json '.samples.secret == 1 and .samples.hidden_ns == 0'
	check "no sample of a program with file capabilities is in its user's profile" json \
		'all(.functions[]; .object | endswith("/setid") | not)'
	who=()
	record_set_id 1 0.6 -f json -o -
	check "root profiles a program with file capabilities" json '.samples.secret == 0 and
		([.functions[] | select(.object | endswith("/setid")).samples] | add > 0)'
}

unfollowed() {
	local pid ctl_pid

	record_children 0.4 -f json -o -
	check "record returns the status of a command with children without room" test $? -eq 0
	check "children without room are counted" json '.samples.unfollowed == 2'
	check "record says how many processes had no room" said \
		"^profilctl: 2 processes could not be followed: profild's process table has no more room$"
	record_children 0.1
	check "a text report says how many processes had no room" said '^2 processes could not be followed$'

	mkfifo "$dir/go"
	# shellcheck disable=SC2016 # another shell's
	"${user[@]}" sh -c 'read -r x; exec "$0" children 0.1' "$spin" <"$dir/go" &
	pid=$!
	exec {go}>"$dir/go"
	await "$pid" grep -qx sh "/proc/$pid/comm"
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

short_ones() {
	check "record -F 50 profiles short processes" record_short
	# shellcheck disable=SC2016 # another shell's
	"$ctl" record -q -F 999 -f json -o "$dir/json" -- sh -c 'i=0; while test $i -lt 100; do /bin/true; i=$((i + 1)); done'
	check "no CPU time ends before its first sample on the CPU clock" json '.samples.unseen_ns == 0'
	"$ctl" record -F 999 -- "$spin" split 0.1 2>"$dir/stderr"
	check "a report says nothing of such threads then" silent_about 'first sample'
}

many_files() {
	check "record returns the status of a command with more files than there is room for" record_files
	check "samples in more files than there is room for are lost" json \
		'.samples.image_full == .samples.lost and .samples.lost > 0'
	check "the other samples are in 512 files" json '[.functions[].object_index] | unique | length <= 512'
	check "record says how many samples were lost" said "^profilctl: $(jq .samples.lost "$dir/json") of $(jq .samples.total "$dir/json") samples were lost"
	check "record advises no lower rate for that" silent_about 'lower rate'
}

many_places() {
	local line='samples are counted by file only: the table of places is full; profile for a shorter time, or fewer processes'

	check "record returns the status of a command with more places than there is room for" record_places
	check "record says how many places had no room" said '^profilctl: [0-9]+ samples are counted by file only'
	check "no sample of a full table of places is lost" json \
		'.samples.total >= 400000 and .samples.binned == .samples.total'
	check "the samples of 72320 of 400000 places have no room" json \
		'.samples.place_full >= 72320'
	check "the samples that have no room are in functions named after files" json \
		'([.functions[] | select(.size == 0).samples] | add) == .samples.place_full'
	line="$(jq .samples.place_full "$dir/json") $line"
	check "a text report says how many samples had no room" grep -qx "$line" <("$ctl" report "$dir/kept")
}

sleepers() {
	local status line='sleeps are not counted: more threads slept than the table has room for'

	record_sleepers
	status=$?
	if test "$status" -eq 77; then
		skip "record says how many sleeps had no room" "$why"
		return
	fi
	check "record --off-cpu returns 0 for 10000 threads that sleep at a time" test "$status" -eq 0
	check "the sleeps of 1808 of 10000 threads have no room" json '.samples.sleepers_full >= 1808'
	line="$(jq .samples.sleepers_full "$dir/json") $line"
	check "record says how many sleeps had no room" said "^profilctl: $line$"
	check "a text report says how many sleeps had no room" grep -qx "$line" <("$ctl" report "$dir/kept")
}

daemon_start --user-children 6
unfollowed
daemon_stop
daemon_start
set_id
file_capability
short_ones
many_files
many_places
sleepers
daemon_stop
finish
