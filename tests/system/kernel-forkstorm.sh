#!/bin/bash
# kernel-forkstorm.sh - thousands of forks, execs and exits: no tick, and no write, goes astray
#
# PROFIL_TEST_STORM_S is how many seconds it takes, PROFIL_TEST_STORM_RATE how many forks there are
# a second where the machine can, PROFIL_TEST_WRAPS how often at least pids must begin again: for
# that it may take ten times as long.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

seconds=${PROFIL_TEST_STORM_S:-5}
wraps=${PROFIL_TEST_WRAPS:-0}

# The number behind the word $2 in the line of $1 of what forkstorm has said.
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

# The first line comes when the storm is over, and it stays until its input ends.
storm() {
	mkfifo "$dir/hold"
	"$BUILD/tests/programs/forkstorm.linked" "$seconds" "${PROFIL_TEST_STORM_RATE:-2000}" "$wraps" \
		<"$dir/hold" >"$dir/storm" 2>"$dir/storm.err" &
	program=$!
	exec {hold}>"$dir/hold"
	sleep $((seconds / 4 + 1)) # how long a daemon needs to have all that it will ever need
	kib=$(daemon_kib)
	until grep -q ^pid "$dir/storm"; do
		kill -0 "$program" 2>/dev/null || { cat "$dir/storm.err"; return 1; }
		sleep 0.1
	done
	sed "s/^/  /" "$dir/storm"
}

all_came_to_an_end() { # LINE
	is "forks" "$(said "$1" fine)" "$(said "$1" "$1")"
}

# What the kernel counted, and where it went, of the process that forked.
conserved() {
	"$BUILD/profilctl" list >"$dir/list"
	cat "$dir/list"
	awk -v pid="$(said pid pid)" -v binned="$(said pid binned)" '
		$1 == pid { found = 1; wrong = $(NF - 3) != binned + $(NF - 2) + $(NF - 1) }
		END { exit !found || wrong }' "$dir/list"
}

# A tenth, and a quarter of a megabyte, are what an allocator may hold back.
memory_is_flat() {
	local now

	now=$(daemon_kib)
	test "$now" -le $((kib * 11 / 10 + 256)) || { echo "$kib kB grew to $now kB"; return 1; }
}

daemon_start --rate 1009
if ! storm; then
	fail "the storm" "it ended early"
	finish
fi
check "children are forked" at_least forks "$(said forks forks)" 100
check "others exec" at_least execs "$(said execs execs)" 50
check "pids began again $wraps times" at_least wraps "$(said forks wraps)" "$wraps"
check "no child has a tick of another's" is strays "$(said forks strays)" 0
check "nothing is written beside the counters" is written "$(said forks written)" 0
check "nothing is written to who is not profiled" is written "$(said execs written)" 0
check "every child came to its end" all_came_to_an_end forks
check "every other came to its end" all_came_to_an_end execs
check "children had ticks of their own" at_least ticks "$(said forks ticks)" 1
check "every tick is binned, unmatched or lost" conserved
check "the daemon's memory is flat" memory_is_flat
exec {hold}>&-
wait "$program"
daemon_stop
finish
