#!/bin/bash
# stack-shares.sh - recorded stacks: shares of a recursion, inlined functions, frames of the kernel, equal paths
# shellcheck source=tests/lib/recorded_stacks.sh
. "$(dirname "$0")/../../lib/recorded_stacks.sh"

# Samples are in leaf(), below recur(), and main() has all of them; at least 300 of some 1000, nine tenths of
# which are below recur().
in_order() {
	by_json | awk '{ n[$1] = $2 } END { print n["leaf"], n["recur"], n["main"]
		exit !(n["leaf"] >= 300 && n["recur"] >= 300 && n["recur"] >= n["leaf"] * 0.9 &&
			n["main"] >= n["recur"] && n["main"] >= n["leaf"]) }'
}

# ok when samples whose stacks match FROM match REGEX; there are LEAST, of which 95 % match: the rest are those of
# the first milliseconds, before the rules are made.
mostly() { # LEAST FROM REGEX
	local least=$1 share=0.95

	# shellcheck disable=SC2016 # awk's
	awk -v least="$least" -v share="$share" -v from="$2" -v path="$3" '
		{ n = $NF; sub(/ [0-9]+$/, "") }
		$0 ~ from { all += n }
		$0 ~ from && $0 ~ path { good += n }
		$0 ~ from && $0 !~ path { other = $0 }
		END { print good + 0, "of", all + 0 (other ? ", not " other : ""); exit !(all >= least && good > 0 && good >= all * share) }' "$dir/folded"
}

inlined() {
	record_inlined
	check "an inlined function is a frame below the one that contains it" mostly 200 '^inlined;' \
		'^inlined;_start;([^;]+;)*main;outer;inner$'
}

kernel_frames() {
	record_copy --kernel-stacks
	check "with --kernel-stacks frames of the kernel are below those of the program" mostly 100 ';vfs_read(;|$)' \
		'^dd;[^;]+;__libc_start_main[^;]*;([^;]+;)*(__)?read;([^;]+;)*ksys_read;vfs_read(;|$)'
	record_copy
	check "without it a stack has one function of the kernel" mostly 100 '^dd;.*;(__)?read(;|$)' ';(__)?read(;[^;]*)?$'
}

# Nodes below main() of levels.c, and their samples.
nodes_below_main() {
	python3 -c '
import json, sys
stacks = json.load(open(sys.argv[1]))["stacks"]
roots, below, nodes, samples = len(stacks["ends"]), [], 0, 0
for parent, frame, _, _, count in stacks["nodes"]:
    below.append(stacks["frames"][frame][0] == "main" or parent >= roots and below[parent - roots])
    nodes += below[-1]
    samples += count * below[-1]
print(nodes, samples)' "$dir/json"
}

# ok when 20 runs of 0.3 s have at most 1.5 times the nodes of two; without a node in common they would have ten times as
# many. The 30 samples of two runs at each of 20 depths miss some places of leaf(): ten measurements had 125 to 135 nodes of
# two runs and 145 to 149 of 20, so that 1.5 is more than six deviations away.
merge() { # NAME COMMAND..., in which RUNS stands for the number
	local name=$1 command=("${@:2}") few many samples runs

	record known --user-only -- "${command[@]//RUNS/1}" # makes the unwind rules of what it executes
	for runs in 2 20; do
		record json -f json --user-only -- "${command[@]//RUNS/$runs}"
		few=${many:-}
		read -r many samples < <(nodes_below_main)
		test "$samples" -ge $((runs * 100)) || fail "$name" "$samples samples of $runs runs"
	done
	if test "$few" -ge 60 && test $((many * 10)) -le $((few * 15)); then
		ok "$name"
	else
		fail "$name" "$few nodes of two runs, $many of 20"
	fi
}

daemon_start
record_recursion json -f json
check "the recursion has the samples" in_order
inlined
kernel_frames
# shellcheck disable=SC2016 # the variable of the shell that starts them
merge "call paths of programs at different addresses merge" sh -c "for i in \$(seq RUNS); do $levels 1 20 0.3; done"
merge "call paths of children merge" "$levels" 1 20 0.3 RUNS
daemon_stop
finish
