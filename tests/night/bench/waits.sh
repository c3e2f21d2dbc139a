#!/bin/bash
# waits.sh - what record --wall costs at each switch and wake-up: waits.sh BUILD..., in turns; ROUNDS=3
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

programs='select((.name == "sched_switch" or .name == "sched_wakeup") and .run_cnt)'

# NS RUNS NAME of the programs' runs since $dir/before, each of them with the 57 ns of the statistics.
runs() {
	bpftool -j prog show | jq -r --slurpfile before "$dir/before" ".[] | $programs"' | . as $now |
		([$before[0][] | select(.id == $now.id)][0] // { run_time_ns: 0, run_cnt: 0 }) as $old |
		select(.run_cnt > $old.run_cnt + 20000) |
		"\((.run_time_ns - $old.run_time_ns) / (.run_cnt - $old.run_cnt) | floor) ns, \(.run_cnt - $old.run_cnt) \(.name)"'
}

round() { # BUILD
	local kind pid

	"$1/profild" --socket "$dir/sock" 2>/dev/null &
	pid=$!
	until "$1/profilctl" record -s "$dir/sock" -q --wall -o "$dir/kept" -- true >/dev/null 2>&1; do :; done
	for kind in pipe futex; do
		bpftool -j prog show | jq "[.[] | $programs]" >"$dir/before"
		taskset -c 0 "$1/profilctl" record -s "$dir/sock" -q --wall -o "$dir/kept" -- "$dir/turns" "$kind" 30000
		runs | sed "s|^|$1 $kind |"
	done
	kill "$pid"
	wait "$pid"
}

"${CC:-gcc}" -O2 -pthread -o "$dir/turns" tests/programs/turns.c || exit
before=$(sysctl -n kernel.bpf_stats_enabled)
sysctl -qw kernel.bpf_stats_enabled=1
for ((i = 0; i < ${ROUNDS:-3}; i++)); do
	for build in "$@"; do round "$build"; done
done
sysctl -qw "kernel.bpf_stats_enabled=$before"
