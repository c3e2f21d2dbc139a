#!/bin/bash
# spool.sh - processes "machine spool", the sums of their profiles, and what holds after they were killed
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck disable=SC2154 # dir and daemon are lib.sh's

ctl=$(realpath "$BUILD/profilctl")
keepers=() # all of them, by pid
through=() # what "machine spool" is run by
trap 'kill -9 "${keepers[@]}" 2>/dev/null; lib_end' EXIT

profiles_of() { # SPOOL
	find "$1" -name '*Z-*.json.gz' 2>/dev/null | wc -l
}

has_profiles() { # SPOOL AT_LEAST
	test "$(profiles_of "$1")" -ge "$2"
}

# Starts "machine spool", and waits until it is keeping profiles. Its pid is $keeper.
keep() { # SPOOL ARGS...
	: >"$1.log" # of an earlier one
	"${through[@]}" "$ctl" machine spool "$@" 2>>"$1.log" &
	keeper=$!
	keepers+=("$keeper")
	await $$ grep -q "keeping a profile" "$1.log"
}

# Turns the machine's profile off, and ends the processes: each must have read the last samples.
keepers_end() { # PID...
	local pid

	"$ctl" machine off
	for pid; do
		kill "$pid"
		wait "$pid" || fail "SIGTERM ends the spool with 0" "status $?: $(cat "$dir"/*.log)"
	done
}

# Samples by outcome, and of each place by the object's path, at 100 Hz.
# shellcheck disable=SC2016 # jq's
sums() { # SPOOL
	zcat "$1"/*.json.gz | jq -cS -n '[inputs | select(.tick_ns == 1e7)] as $all |
		($all | map(.samples | [.total, .binned, .unmatched, .lost]) | transpose | map(add)),
		($all | map(.objects as $o | .places[] | {at: [$o[.[0]].path, .[1], .[2]], n: .[3]}) |
			group_by(.at) | .[] | [.[0].at, (map(.n) | add)])'
}

# Kills "machine spool" five times while it keeps profiles in SPOOL, the Nth time after "COMMAND N". Starts another one,
# $keeper, for which all that the killed ones left must be whole.
killed() { # SPOOL COMMAND
	local i

	for i in 1 2 3 4 5; do
		keep "$1" -i 1 -f pprof
		await $$ has_profiles "$1" "$i"
		"$2" "$i"
		kill -9 "$keeper"
		wait "$keeper" 2>/dev/null
	done
	keep "$1" -i 1
	check "the next spool removes the temporary files of a killed one" test -z "$(find "$1" -name '*.gz.*')"
	check "every file is complete after five kills" sh -c "test -n \"\$(ls '$1')\" && gzip -t '$1'/*.gz &&
		'$ctl' report --spool '$1' --since -1h"
}

# Each profile begins where the one before it has ended, or later.
# shellcheck disable=SC2016 # jq's
do_not_overlap() { # SPOOL
	zcat "$1"/*.json.gz | jq -e -s 'sort_by(.started_boot_ns) | . as $p | length > 1 and
		all(range(1; length); $p[.].started_boot_ns >= $p[. - 1].started_boot_ns + $p[. - 1].duration_ns - 1e6)'
}
