#!/bin/bash
# event-counts.sh - record -e counts few events beside those that a program causes, and has each event that perf has
#
# What the program causes beside its own account are events of its start and of its end.
# shellcheck source=tests/lib/event_counts.sh
. "$(dirname "$0")/../../lib/event_counts.sh"

# Counts of EVENT in a program that causes them by WHAT are at most MORE above its own account.
few_more() { # EVENT MORE WHAT ARG...
	local said name="at most $2 $1 are counted beside those of the program"

	said=$(caused "$1" "${@:3}")
	# shellcheck disable=SC2119 # samples() is of the whole profile
	case $? in
	0) check "$name" within "$said" "$(samples)" $((said + $2)) ;;
	77) skip "$name" "$said" ;;
	*) fail "$name" "$(cat "$dir/stderr")" ;;
	esac
}

# A virtual machine often has no hardware counters.
cycles() {
	if perf stat -x, -e cycles:u true 2>&1 | grep -q '^<not supported>'; then
		check "list --events does not name cycles, which perf does not have" sh -c "! '$ctl' list --events | grep -x cycles"
	else
		check "list --events names cycles, which perf has" has_event cycles
	fi
}

daemon_start
# A process that starts faults in its code and data, some 100 times.
few_more minor-faults 400 minor 5000
few_more major-faults 30 major 300 "$dir/pages"
few_more cpu-migrations 20 migrate 300
if has_event sched:sched_switch; then
	few_more sched:sched_switch 20 sleep 1000
else
	skip "at most 20 sched:sched_switch are counted beside those of the program" "this kernel has no such tracepoint"
fi
if command -v perf >/dev/null; then
	cycles
else
	lacks "list --events names the cycles that perf has" "perf"
fi
daemon_stop
finish
