#!/bin/bash
# forkstorm.sh - thousands of forks, execs and exits: every tick and write reaches the right process
#
# PROFIL_TEST_STORM_S: seconds. PROFIL_TEST_STORM_RATE: forks per second, as far as the machine can.
# PROFIL_TEST_WRAPS: how often pids must wrap around, for which the storm may take ten times as long.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

seconds=${PROFIL_TEST_STORM_S:-5}
wraps=${PROFIL_TEST_WRAPS:-0}

# Prints the number after WORD in forkstorm's line LINE.
said() { # LINE WORD
	awk -v line="$1" -v word="$2" '$1 == line { for (i = 1; i < NF; i++) if ($i == word) print $(i + 1) }' "$dir/storm"
}

is() { # WHAT NUMBER WANT
	test "$2" -eq "$3" || { echo "$1: $2, not $3"; return 1; }
}

at_least() { # WHAT NUMBER LEAST
	test "${2:-0}" -ge "$3" || { echo "$1: ${2:-0}, not $3 at least"; return 1; }
}

daemon_kib() {
	awk '$1 == "VmRSS:" { print $2 }' "/proc/$daemon/status"
}

# forkstorm prints its results when the storm is over, and exits when its input ends. After a first, shorter storm the
# daemon has allocated all that it needs.
storm() {
	"$BUILD/tests/programs/forkstorm.linked" $((seconds / 4 + 1)) "${PROFIL_TEST_STORM_RATE:-2000}" \
		</dev/null >"$dir/storm" 2>"$dir/storm.err" || { cat "$dir/storm" "$dir/storm.err"; return 1; }
	kib=$(daemon_kib)
	mkfifo "$dir/hold"
	"$BUILD/tests/programs/forkstorm.linked" "$seconds" "${PROFIL_TEST_STORM_RATE:-2000}" "$wraps" \
		<"$dir/hold" >"$dir/storm" 2>"$dir/storm.err" &
	program=$!
	exec {hold}>"$dir/hold"
	until grep -q ^pid "$dir/storm"; do
		alive "$program" || { cat "$dir/storm.err"; return 1; }
		sleep 0.1
	done
	sed "s/^/  /" "$dir/storm"
}

all_came_to_an_end() { # LINE
	is "forks" "$(said "$1" fine)" "$(said "$1" "$1")"
}

# The kernel's total of the forking process is binned + unmatched + lost.
conserved() {
	"$BUILD/profilctl" list >"$dir/list"
	cat "$dir/list"
	awk -v pid="$(said pid pid)" -v binned="$(said pid binned)" '
		$1 == pid { found = 1; wrong = $(NF - 3) != binned + $(NF - 2) + $(NF - 1) }
		END { exit !found || wrong }' "$dir/list"
}

# The limits, a tenth and 256 KiB, are what an allocator may keep of freed memory.
memory_is_flat() {
	local now

	now=$(daemon_kib)
	test "$now" -le $((kib * 11 / 10 + 256)) || { echo "$kib kB grew to $now kB"; return 1; }
}

daemon_start --rate 1009
if ! storm; then
	fail "the storm runs to its end" "it ended early"
	finish
fi
check "the storm forks at least 100 children" at_least forks "$(said forks forks)" 100
check "the storm execs at least 50 programs" at_least execs "$(said execs execs)" 50
check "pids wrapped around at least $wraps times" at_least wraps "$(said forks wraps)" "$wraps"
check "no child has a tick of another process" is strays "$(said forks strays)" 0
check "nothing is written beside the counters" is written "$(said forks written)" 0
check "nothing is written to a process without a profile" is written "$(said execs written)" 0
check "every child exits with 0" all_came_to_an_end forks
check "every exec'd program exits with 0" all_came_to_an_end execs
check "children have ticks of their own" at_least ticks "$(said forks ticks)" 1
check "every tick is binned, unmatched or lost" conserved
check "the daemon's memory does not grow" memory_is_flat
exec {hold}>&-
wait "$program"
daemon_stop
finish
