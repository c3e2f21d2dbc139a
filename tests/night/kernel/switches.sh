#!/bin/bash
# switches.sh - record --wall of threads that do nothing but wake each other up: constant memory, and nothing is missing
#
# PROFIL_TEST_SWITCHES_S: seconds of the recording, the second half of which is compared with the first. How many switches
# a second it had is printed; fewer than 100000 are no verdict.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")
seconds=${PROFIL_TEST_SWITCHES_S:-600}

kib() { # PID
	awk '$1 == "VmRSS:" { print $2 }' "/proc/$1/status"
}

# Bytes of all maps of the daemon.
map_bytes() {
	cat "/proc/$daemon"/fdinfo/* 2>/dev/null | awk '$1 == "memlock:" { n += $2 } END { print n + 0 }'
}

switches() { # PID
	cat "/proc/$1"/task/*/status | awk '/ctxt_switches/ { n += $2 } END { print n }'
}

# A tenth and 1 MiB are what an allocator may keep of freed memory.
is_constant() { # WHAT BEFORE AFTER
	echo "# $1: $2 KiB, then $3 KiB"
	test "$3" -le $(($2 + $2 / 10 + 1024))
}

daemon_start
check "turns.c is built" "${CC:-gcc}" -O2 -pthread -o "$dir/turns" tests/programs/turns.c
# Two threads on one CPU, by a futex whose word is a variable: what a switch and a wake-up cost most.
taskset -c 0 "$dir/turns" futex 2000000000 &
turns=$!
"$ctl" attach -q --wakers --threads --slices 100x1 -d "$seconds" -o "$dir/kept" "$turns" 2>"$dir/stderr" &
attach=$!
await_listed "^ *$turns .* attachment " "$attach"
sleep $((seconds / 2))
memory=$(kib "$daemon") client=$(kib "$attach") maps=$(map_bytes) before=$(switches "$turns") began=$SECONDS
sleep $((seconds / 2 - 5))
after=$(switches "$turns") elapsed=$((SECONDS - began))
printf '# %d switches a second\n' $(((after - before) / elapsed))
check "profild's memory is constant" is_constant profild "$memory" "$(kib "$daemon")"
check "profilctl's memory is constant" is_constant profilctl "$client" "$(kib "$attach")"
check "the maps have the same size" test "$maps" -gt 0 -a "$maps" -eq "$(map_bytes)"
test $(((after - before) / elapsed)) -ge 100000 ||
	skip "there are 100000 switches a second" "the machine makes $(((after - before) / elapsed)) of them: something else runs"
wait "$attach"
check "the recording ends well" test $? -eq 0
cat "$dir/stderr"
kill "$turns"
# shellcheck disable=SC2016 # jq's
check "no sleep found no room, and two threads' time adds up to two seconds a second" jq -e '.samples as $s | $s.sleepers_full == 0 and
	$s.lost == 0 and ($s.total * .tick_ns / .duration_ns | ., . > 1.98 and . < 2.02)' "$dir/kept"
check "the program's two threads are told apart" test "$("$ctl" report -f folded "$dir/kept" | grep -oE ';turns \([0-9]+\);' | sort -u | wc -l)" -eq 2
daemon_stop
finish
