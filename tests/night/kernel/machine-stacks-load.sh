#!/bin/bash
# machine-stacks-load.sh - the machine's stacks under a fork storm and ever new programs: constant memory
#
# PROFIL_TEST_STACKS_S: seconds of each of the two measured parts. CPU time, which has the storm's own profiles in it,
# and the ends of the stacks are printed.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
seconds=${PROFIL_TEST_STACKS_S:-120}
pids=()
# shellcheck disable=SC2154 # dir and daemon are lib.sh's, p is the trap's
trap 'for p in "${pids[@]}"; do kill "$p" 2>/dev/null; done; lib_end' EXIT

# A program that has never been there: its functions have other names and other code.
new_programs() {
	local n

	for ((n = 0; ; n++)); do
		printf 'volatile long s; __attribute__((noipa)) void f%d(void) { for (long i = 0; i < %d; i++) s += i ^ %d; }
			int main(void) { f%d(); }\n' "$n" $((20000000 + n)) "$n" "$n" >"$dir/new.c"
		"${CC:-gcc}" -O2 -fomit-frame-pointer -o "$dir/new.$n" "$dir/new.c" && "$dir/new.$n"
		rm -f "$dir/new.$n"
	done
}

fork_storm() {
	while :; do "$BUILD/tests/programs/forkstorm.linked" 5 2000 </dev/null >"$dir/storm" 2>&1; done
}

kib() { # PID
	awk '$1 == "VmRSS:" { print $2 }' "/proc/$1/status"
}

# Bytes of all maps of the daemon.
map_bytes() {
	cat "/proc/$daemon"/fdinfo/* 2>/dev/null | awk '$1 == "memlock:" { n += $2 } END { print n + 0 }'
}

cpu_us() { # PID
	awk '{ ns += $1 } END { printf "%d\n", ns / 1000 }' "/proc/$1"/task/*/schedstat
}

# A tenth and 1 MiB are what an allocator may keep of freed memory.
is_constant() { # WHAT BEFORE AFTER
	echo "$1: $2 KiB, then $3 KiB"
	test "$3" -le $(($2 + $2 / 10 + 1024))
}

daemon_start --machine=97,stacks
"$ctl" machine feed 2>>"$dir/log" &
feeder=$!
pids+=("$feeder")
new_programs 2>>"$dir/log" &
pids+=("$!")
fork_storm &
pids+=("$!")
"$ctl" machine report -d "$seconds" -f json -o "$dir/first.json" 2>>"$dir/log"
memory=$(kib "$daemon")
feeder_memory=$(kib "$feeder")
maps=$(map_bytes)
cpu=$(cpu_us "$daemon")
feeder_cpu=$(cpu_us "$feeder")
"$ctl" machine report -d "$seconds" -f json -o "$dir/second.json" 2>>"$dir/log"
printf '# CPU of a second: profild %d us, feeder %d us\n' \
	$((($(cpu_us "$daemon") - cpu) / seconds)) $((($(cpu_us "$feeder") - feeder_cpu) / seconds))
printf '# %s\n' "$(jq -c '[.samples.total, .samples.calls_folded // 0, (.stacks.ends | map([.end, .samples]))]' "$dir/second.json")"
check "profild's memory is constant" is_constant profild "$memory" "$(kib "$daemon")"
check "the feeder's memory is constant" is_constant "the feeder" "$feeder_memory" "$(kib "$feeder")"
check "the maps have the same size" test "$maps" -gt 0 -a "$maps" -eq "$(map_bytes)"
daemon_stop
finish
