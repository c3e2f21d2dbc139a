#!/bin/bash
# suspend.sh - the machine goes to sleep, and comes back, while programs are profiled
#
# In a guest: PROFIL_VM_SUITES=suspend tests/vm/run.sh trixie
#
# The kernel freezes every process and suspends every device, as for a real suspend, stays there for
# five seconds, and goes back (pm_test): nobody has to wake it.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"
# shellcheck source=tests/vm/counts.sh
. tests/vm/counts.sh

# How often the machine has come back.
resumed() {
	cat /sys/power/suspend_stats/success
}

sleeps_and_wakes() {
	local before

	before=$(resumed)
	echo devices >/sys/power/pm_test && echo freeze >/sys/power/state || return 1
	test "$(resumed)" -gt "$before" || { echo "it has come back $(resumed) times, and $before before"; return 1; }
}

begins() { # PID
	local end=$((SECONDS + 60))

	until "$BUILD/profilctl" list | grep -q "\<$1\>"; do
		test "$SECONDS" -lt "$end" || return 1
		sleep 0.1
	done
}

conserved() {
	jq -c .samples "$dir/report"
	jq -e '.samples.total > 100 and
		.samples.total == .samples.binned + .samples.unmatched + .samples.lost' "$dir/report" >/dev/null
}

# All of the machine is gone for a while: only a guest may be told so.
if ! grep -q virtme /proc/cmdline; then
	skip "the machine sleeps" "only in a guest of tests/vm/run.sh"
	finish
elif ! grep -q devices /sys/power/pm_test 2>/dev/null; then
	skip "the machine sleeps" "its kernel has no /sys/power/pm_test"
	finish
fi
daemon_start
mkfifo "$dir/hold"
"$BUILD/tests/programs/split.linked" 2 on <"$dir/hold" >"$dir/split" 2>&1 &
program=$!
exec {hold}>"$dir/hold"
check "a program is profiled" begins "$program"
"$BUILD/profilctl" attach -F 200 -f json -o "$dir/report" "$program" 2>"$dir/attach" &
attach=$!
check "the machine sleeps and wakes" sleeps_and_wakes
check "... and once more" sleeps_and_wakes
sleep 2 # it works on, counted as before
exec {hold}>&-
wait "$program"
check "the program's ticks are its time, where it was spent" counts_right
wait "$attach"
check "every tick is binned, unmatched or lost" conserved
daemon_stop
finish
