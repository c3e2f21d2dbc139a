#!/bin/bash
# event-counts.sh - record -e counts each event of a program that causes a known number of them
#
# Each event has a sample of its own, so none of these counts is subject to chance.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")
deeds=$dir/deeds
${CC:-gcc} -O2 -g -o "$deeds" tests/programs/deeds.c -pthread || exit 1

if ! command -v jq >/dev/null; then
	lacks "events are counted" "jq"
	finish
fi

# Records the program's events. Prints how many it has caused by its own account.
# 77: it cannot cause them, and its output says why.
caused() { # EVENT WHAT ARG...
	"$ctl" record -q -e "$1" -o "$dir/kept" -- "$deeds" "${@:2}" 2>"$dir/stderr"
}

# LEAST <= NUMBER <= MOST
within() { # LEAST NUMBER MOST
	if test "$1" -gt "$2" || test "$2" -gt "$3"; then
		echo "$2 samples, not $1 to $3: $(cat "$dir/stderr")"
		return 1
	fi
}

# The samples of the profile, or of a function of the program, with those in the kernel that it entered.
samples() { # [FUNCTION]
	"$ctl" report --fold-kernel -f json "$dir/kept" | jq --arg name "${1:-}" \
		'if $name == "" then .samples.total else [.functions[] | select(.name == $name).samples] | add // 0 end'
}

# Counts of EVENT in a program that causes N by WHAT: of the whole program they are at most MORE above
# its own account, and in FUNCTION 2 at most, the pages of its code.
counts() { # EVENT MORE FUNCTION N WHAT ARG...
	local event=$1 more=$2 function=$3 n=$4 said status

	said=$(caused "$event" "$5" "$n" "${@:6}")
	status=$?
	if test "$status" -eq 77; then
		skip "each of $n $event is counted" "$said"
		return
	fi
	check "record -e $event returns 0" test "$status" -eq 0
	check "the program causes at least $n $event" test "${said:-0}" -ge "$n"
	check "each of $n $event is counted" within "$said" "$(samples)" $((said + more))
	check "no sample of the $event is lost" jq -e '.samples.total == .samples.binned' "$dir/kept"
	# shellcheck disable=SC2016 # jq's variable
	check "the profile names $event as its event" jq -e --arg event "$event" \
		'.event == $event and .period == 1 and .tick_ns == 0' "$dir/kept"
	test -z "$function" || check "each of $n $event is counted in its function" within \
		"$said" "$(samples "$function")" $((said + 2))
}

# A major fault is no minor one.
not_minor() {
	local said

	said=$(caused minor-faults major 300 "$dir/pages")
	case $? in
	0) check "major faults are not counted as minor-faults" within 0 "$(samples read_pages)" 2 ;;
	77) skip "major faults are not counted as minor-faults" "$said" ;;
	*) fail "major faults are not counted as minor-faults" "$(cat "$dir/stderr")" ;;
	esac
}

# sched_switch has seen some more of the process's context switches than it counts itself: those of its
# start and of its end.
switches() {
	local said

	said=$(caused sched:sched_switch sleep 1000)
	check "record -e sched:sched_switch returns 0" test $? -eq 0
	check "each of 1000 sleeps is counted by sched:sched_switch" within "$said" "$(samples)" $((said + 20))
	check "the program sleeps 1000 times" test "${said:-0}" -ge 1000
}

# A virtual machine often has no hardware counters.
cycles() {
	if perf stat -x, -e cycles:u true 2>&1 | grep -q '^<not supported>'; then
		"$ctl" record -e cycles -f json -o "$dir/none" -- touch "$dir/ran" 2>"$dir/stderr"
		check "record -e cycles returns 125 without a hardware counter" test $? -eq 125
		check "record -e cycles says that the machine has no such event" test "$(cat "$dir/stderr")" = \
			"profilctl: this machine has no event cycles; 'profilctl list --events' shows those that it has"
		check "record -e cycles does not run the command then" test ! -e "$dir/ran"
		check "record -e cycles writes no profile then" test ! -e "$dir/none"
		check "list --events does not name cycles then" sh -c "! '$ctl' list --events | grep -x cycles"
	else
		check "record -e cycles has samples of a busy program" sh -c "'$ctl' record -q -e cycles -f json -o '$dir/json' -- \
			sh -c 'i=0; while test \$i -lt 300000; do i=\$((i + 1)); done' && jq -e '.samples.total > 0' '$dir/json'"
	fi
}

daemon_start
# A process that starts faults in its code and data, some 100 times.
counts minor-faults 400 write_pages 5000 minor
counts major-faults 30 read_pages 300 major "$dir/pages"
not_minor
counts cpu-migrations 20 '' 300 migrate
if "$ctl" list --events 2>/dev/null | grep -qx sched:sched_switch; then
	switches
else
	skip "each of 1000 sleeps is counted by sched:sched_switch" "this kernel has no such tracepoint"
fi
if command -v perf >/dev/null; then
	cycles
else
	lacks "record -e cycles says that the machine has no such event" "perf"
fi
daemon_stop
finish
