#!/bin/bash
# stacks.sh - the part of the benchmark that is about call graphs
#
# As in parts.sh: part_stacks is one round, what a sample takes against bpf_get_stack() alone.
# shellcheck disable=SC2154 # lib.sh sets what is used here

part_stacks_begin() {
	old_stats=$(sysctl -n kernel.bpf_stats_enabled)
	sysctl -q kernel.bpf_stats_enabled=1
	daemon_start stacks --fast-rate 9999
}

part_stacks_end() {
	sysctl -q kernel.bpf_stats_enabled="$old_stats"
}

# The time of a sample of the process: other processes' runs, which find nothing, take 100 ns.
graph_during() { # MODE FRAMES PID
	local before after

	before=$(program_runs "$daemon" tick_event)
	"$ctl" attach -q --call-graph="$1" -F 9999 -d "$SECONDS_EACH" -f json -o "$dir/graph.json" "$3"
	after=$(program_runs "$daemon" tick_event)
	number stacks "$1-$2" run_ns "$(echo "$before $after $(jq .samples.total "$dir/graph.json")" |
		awk '{ others = $3 - $1 - $5; printf "%.1f", ($4 - $2 - 100 * (others > 0 ? others : 0)) / $5 }')"
}

get_stack_during() { # FRAMES PID
	rm -f "$dir/stack.in"
	mkfifo "$dir/stack.in"
	"$floor" 9999 "$2" <"$dir/stack.in" >"$dir/stack.out" &
	peer_pid=$!
	exec {peer_in}>"$dir/stack.in"
	sleep "$SECONDS_EACH"
	exec {peer_in}>&-
	wait "$peer_pid"
	peer_pid=''
	number stacks "get-stack-$1" run_ns "$(awk '/^run_ns/ { print $2 }' "$dir/stack.out")"
}

part_stacks() {
	local frames mode pid

	for frames in 5 32 122; do
		BENCH_CPU=$CPU BENCH_STOP=1 "$work" deep "$frames" &
		pid=$!
		until_true state_is "$pid" T
		kill -CONT "$pid"
		get_stack_during "$frames" "$pid"
		for mode in fp cfi; do
			graph_during "$mode" "$frames" "$pid"
			clocks_gone stacks
		done
		kill -KILL "$pid"
		wait "$pid" 2>/dev/null
	done
}
