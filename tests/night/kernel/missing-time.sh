#!/bin/bash
# missing-time.sh - how much a profile lacks: of set-id programs, unfollowed processes, short threads, full tables
# shellcheck source=tests/lib/missing.sh
. "$(dirname "$0")/../../lib/missing.sh"

# Seconds of CPU time are LEAST to MOST.
seconds() { # SECONDS LEAST MOST
	awk -v s="$1" -v least="$2" -v most="$3" 'BEGIN { exit !(s != "" && s >= least && s <= most) }' ||
		{ echo "$1 s, not $2 to $3"; return 1; }
}

# FAIL when a recording of the programs above has another status than 0.
recorded() { # FUNCTION ARG...
	"$@" || fail "$1 has a profile" "status $?: $(cat "$dir/stderr")"
}

set_id() {
	set_id_make "record counts the CPU time of a set-id program" || return
	who=("${user[@]}")
	record_set_id 1 0.6 -f json -o -
	# The shell's child is named "setid" when its execve() has begun.
	check "a set-id program's process has no more than a tick's samples" json \
		'[.groups[] | select(.command == "setid").samples] | add // 0 | . < 5'
	# 600 samples, less or more by half a sample for each time slice: 5 % are 6 deviations at 100 slices.
	check "the program before it is profiled" json '.samples.total > 570 and .samples.total < 660'
	check "record counts the CPU time of a set-id program" seconds \
		"$(jq '(.cpu_ns - .samples.total * .tick_ns) / 1e9' "$dir/json")" 0.57 0.66
	who=()
	record_set_id 1 0.6 -f json -o -
	check "root's profile has the samples of a set-id program" json \
		'[.functions[] | select(.object | endswith("/setid")).samples] | add > 500'
}

# Two of four children have room.
unfollowed() {
	recorded record_children 0.4 -f json -o -
	check "the samples are those of the children with room" json '.samples.total > 720 and .samples.total < 920'
	check "record says how much CPU time the others used" said \
		'^profilctl: 0[.][78][0-9] s of 1[.][56][0-9] s of CPU time are not in the profile: processes could not be followed$'
}

# The CPU time of a process and of the children that it has reaped, in clock ticks.
family_has_used() { # PID CLOCK_TICKS
	test "$(awk '{ print $14 + $15 + $16 + $17 }' "/proc/$1/stat")" -ge "$2"
}

# A child that ran before attach ends, and its parent's CPU time includes it from then on.
reaped() {
	local shell attach

	mkfifo "$dir/end"
	# The child stops itself until attach observes the shell, and uses 1.2 s of CPU time then.
	# shellcheck disable=SC2016 # another shell's
	sh -c 'sh -c '\''kill -STOP $$; exec "$0" split 1.2'\'' "$1" & echo $! >"$2"; wait; read -r x' - "$spin" "$dir/child" <"$dir/end" &
	shell=$!
	exec {end}>"$dir/end"
	await "$shell" test -s "$dir/child"
	"$ctl" attach -F 999 "$shell" >"$dir/said" 2>"$dir/stderr" &
	attach=$!
	await_listed "^ *$shell " "$attach"
	await "$attach" grep -q '^State:.*stopped' "/proc/$(cat "$dir/child")/status"
	kill -CONT "$(cat "$dir/child")"
	await "$attach" family_has_used "$shell" "$(getconf CLK_TCK)"
	kill -INT "$attach"
	wait "$attach"
	check "attach returns 0 for a process whose child ran before" test $? -eq 0
	check "attach says that CPU time of a process that it did not observe is missing" said \
		'^profilctl: 1[.][0-9]+ s of 1[.][0-9]+ s of CPU time are not in the profile: processes ran that were not observed$'
	echo >&"$end"
	exec {end}>&-
	wait "$shell"
}

# What they use after their last tick is charged when they end, and that of those without a tick with others.
short_ones() {
	recorded record_short
	# shellcheck disable=SC2016 # jq's
	check "samples stand for the CPU time of short processes" json \
		'. as $j | .samples.total * .tick_ns + .samples.unseen_ns | . > 0.9 * $j.cpu_ns and . < 1.1 * $j.cpu_ns'
	check "little CPU time of short processes has no sample" json '.samples.unseen_ns < .cpu_ns / 5'
}

# The files have equal shares: those of 188 of 700 have no room.
many_files() {
	recorded record_files
	check "20 to 40 % of the samples in 700 files are lost" json '.samples.lost * 100 / .samples.total | . > 20 and . < 40'
	check "the other samples are in more than 500 files" json '[.functions[].object_index] | unique | length | . > 500'
}

many_places() {
	recorded record_places
	check "the samples of 72320 of 400000 places have no room, and some more" json \
		'.samples.place_full | . >= 72320 and . < 150000'
}

sleepers() {
	local name="the sleeps of 1808 of 10000 threads have no room, and few more"

	record_sleepers
	case $? in
	0) check "$name" json '.samples.sleepers_full | . >= 1808 and . < 2300' ;;
	77) skip "$name" "$why" ;;
	*) fail "$name" "$(cat "$dir/stderr")" ;;
	esac
}

daemon_start --user-children 6
unfollowed
daemon_stop
daemon_start
set_id
reaped
short_ones
many_files
sleepers
many_places
daemon_stop
finish
