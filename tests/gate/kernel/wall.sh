#!/bin/bash
# wall.sh - record --wall: all time of threads is counted once, in one of three states
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")

# Each sample is in one state, and the views of the states add up to the profile.
adds_up() { # PROFILE
	local all states

	all=$("$ctl" report -f json "$1" | jq .samples.total)
	states=$(for state in running runnable asleep; do
		"$ctl" report -f json --state "$state" "$1" 2>/dev/null | jq .samples.total
	done | awk '{ n += $1 } END { print n + 0 }')
	test "$states" = "$all" && test "$("$ctl" report -f folded "$1" | awk '{ n += $NF } END { print n }')" = "$all" && return
	echo "$states of $all samples have a state"
	false
}

through() { # STATE FUNCTION PROFILE
	"$ctl" report -f folded "$3" | grep -qE "(^|;)\[$1[],].*;$2[; ]"
}

# A thread that waits for input waits for at least a sample's time, and it is never on the CPU meanwhile.
record_waits() {
	"$ctl" record -q --wall -o "$dir/kept" -- "$dir/waits" >/dev/null
}

# The samples of the loop come sooner or later.
has_run() {
	until record_waits && through "on CPU" compute "$dir/kept"; do :; done
}

daemon_start
check "waits.c is built" "${CC:-gcc}" -O2 -fno-optimize-sibling-calls -pthread -o "$dir/waits" tests/programs/waits.c
check "a loop is on the CPU" has_run
for function in wait_for_lock wait_for_time wait_for_input; do
	check "$function() is asleep" through asleep "$function" "$dir/kept"
done
check "the states add up" adds_up "$dir/kept"

sleep 1000 &
sleeper=$!
await "$sleeper" grep -q "^$sleeper (sleep) S" "/proc/$sleeper/stat"
check "a thread that does not run is attached to" "$ctl" attach --wall -d 1 -o "$dir/quiet" "$sleeper"
check "a thread that does not run is asleep" test "$("$ctl" report -f folded "$dir/quiet" | sed 's/ [0-9]*$//')" = \
	'sleep;[asleep, cut: unreadable stack]'
check "the states of a thread that does not run add up" adds_up "$dir/quiet"
kill "$sleeper"

refused() { # WORDS OPTION...
	"$ctl" "${@:2}" 2>"$dir/err"
	test $? -eq 2 && grep -q -e "$1" "$dir/err"
}
check "--user-only is refused" refused "leave out --user-only" record --wall --user-only -- true
check "--slices is refused" refused "leave out --slices" record --wall --slices 4x1 -- true
check "a second event is refused" refused "there is another event" record --wall -e page-faults -- true

# As an ordinary user, without the kernel's addresses.
unprivileged() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$ctl" record -q --wall -f folded -o - -- "$dir/waits" >"$dir/folded" 2>"$dir/err" ||
		{ cat "$dir/err"; false; }
}
chmod 755 "$dir" "$dir/waits"
check "an ordinary user records all time" unprivileged
check "an ordinary user's threads are asleep where they wait" grep -q '\[asleep\];.*;wait_for_input' "$dir/folded"
daemon_stop
finish
