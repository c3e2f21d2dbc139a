#!/bin/bash
# stacks.sh - the part of the benchmark that is about call graphs
#
# As in parts.sh: part_stacks is one round, what a sample takes against bpf_get_stack() alone, and what is
# written. Memory is measured once, during a profile of the whole machine.
# shellcheck disable=SC2154 # lib.sh sets what is used here

part_stacks_begin() {
	old_stats=$(sysctl -n kernel.bpf_stats_enabled)
	sysctl -q kernel.bpf_stats_enabled=1
	daemon_start stacks-machine --rate 199
	graph_over_time
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

# What profilctl, from its start on, and profild with its workers write to files while they take the stacks of a process
# whose unwind rules are in the cache, where graph_during() has put them. The profile itself goes to a pipe.
written_during() { # PID
	local before

	before=$(written_by_profild)
	"$ctl" attach -q -g -F 999 -f json -o - "$1" > >(cat >/dev/null) &
	peer_pid=$!
	until_true listed "$1"
	sleep "$SECONDS_EACH"
	number stacks attach samples "$("$ctl" list --json | jq '.profiles[0].total')"
	number stacks attach written_bytes $(($(written_by_profild) - before + $(written "$peer_pid")))
	kill -INT "$peer_pid"
	wait "$peer_pid"
	peer_pid=''
}

written_by_profild() {
	local pid sum=0

	for pid in "$daemon" $(pgrep -P "$daemon"); do
		sum=$((sum + $(written "$pid")))
	done
	echo "$sum"
}

attached() {
	"$ctl" list | grep -q ' attachment '
}

# Memory of a profile of the whole machine with stacks, once.
graph_over_time() {
	"$ctl" attach -q -a -g -o "$dir/kept" &
	peer_pid=$!
	until_true attached
	with_mix memory_in_mix stacks stacks-machine
	number stacks memory samples "$("$ctl" list --json | jq '.profiles[0].total')"
	kill -INT "$peer_pid"
	wait "$peer_pid"
	peer_pid=''
	clocks_gone stacks-machine
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
		written_during "$pid"
		clocks_gone stacks
		kill -KILL "$pid"
		wait "$pid" 2>/dev/null
	done
}
