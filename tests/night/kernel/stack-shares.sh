#!/bin/bash
# stack-shares.sh - recorded stacks: the same numbers in every format; inlined functions, frames of the kernel, equal paths
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")

# --- one recording in every format ----------------------------------------------------------------

# Inclusive samples of three functions, in the order of their names, by each reader.
by_json() {
	python3 -c '
import collections, json, sys
stacks = json.load(open(sys.argv[1]))["stacks"]
roots, inclusive = len(stacks["ends"]), collections.Counter()
for node in stacks["nodes"]:
    count, on_path = node[4], set()
    while True:
        on_path.add(stacks["frames"][node[1]][0])
        if node[0] < roots:
            break
        node = stacks["nodes"][node[0] - roots]
    for name in on_path:
        inclusive[name] += count
for name in "leaf", "main", "recur":
    print(name, inclusive[name])' "$dir/json"
}

by_folded() {
	awk '{ n = $NF; sub(/ [0-9]+$/, ""); split("", seen); frames = split($0, frame, ";")
		for (i = 2; i <= frames; i++) if (!seen[frame[i]]++) sum[frame[i]] += n }
		END { print "leaf", sum["leaf"]; print "main", sum["main"]; print "recur", sum["recur"] }' "$dir/folded"
}

by_go() {
	go tool pprof -top -cum -nodefraction=0 -nodecount=100000 -sample_index=samples "$dir/pprof" 2>/dev/null |
		awk '$6 ~ /^(main|recur|leaf)$/ { print $6, $4 }' | sort
}

by_speedscope() {
	python3 -c '
import json, sys
tick, p = json.load(open(sys.argv[1]))["tick_ns"], json.load(open(sys.argv[2]))
frames, one = p["shared"]["frames"], p["profiles"][0]
for name in "leaf", "main", "recur":
    ns = sum(w for s, w in zip(one["samples"], one["weights"]) if any(frames[f]["name"] == name for f in s))
    print(name, ns // tick if ns % tick == 0 else ns / tick)' "$dir/json" "$dir/speedscope"
}

by_callgrind() {
	callgrind_annotate --auto=no --inclusive=yes --threshold=100 "$dir/callgrind" |
		sed -n 's/^ *\([0-9,]*\) .*:\(main\|recur\|leaf\) .*/\2 \1/p' | tr -d , | sort
}

# The nodes whose innermost frame is a place have as many samples as that place has in the flat profile.
nodes_add_up() {
	python3 -c '
import collections, json, sys
p = json.load(open(sys.argv[1]))
flat, tree = collections.Counter(), collections.Counter()
for object, offset, _, count, *_ in p["places"]:
    flat[object, offset] += count
for _, _, object, offset, count in p["stacks"]["nodes"]:
    tree[object, offset] += count
tree = +tree  # without zeros
print(len(flat), "places,", len(tree), "of nodes;", {at: (flat[at], tree[at]) for at in flat | tree if flat[at] != tree[at]})
sys.exit(flat != tree or len(flat) < 4 or sum(flat.values()) != p["samples"]["binned"])' "$dir/kept"
}

# Samples are in leaf(), below recur(), and main() has all of them; at least 300 of some 1000, nine tenths of
# which are below recur().
in_order() {
	local least=300 share=0.9

	by_json | awk -v least="$least" -v share="$share" '{ n[$1] = $2 } END { print n["leaf"], n["recur"], n["main"]
		exit !(n["leaf"] >= least && n["recur"] >= least && n["recur"] >= n["leaf"] * share &&
			n["main"] >= n["recur"] && n["main"] >= n["leaf"]) }'
}

# The text of the same profile without its stacks is the same, but for the lines on how they end.
same_table() {
	"$ctl" report -a "$dir/kept" >"$dir/with"
	python3 -c 'import json, sys; p = json.load(open(sys.argv[1])); del p["stacks"]; json.dump(p, sys.stdout)' "$dir/kept" >"$dir/flat"
	"$ctl" report -a "$dir/flat" >"$dir/without"
	diff "$dir/without" "$dir/with" >"$dir/differences"
	cat "$dir/differences"
	test "$(wc -l <"$dir/without")" -gt 5 && grep -q '% of the stacks reach the start' "$dir/differences" &&
		! grep -qvE '^[0-9]+a[0-9,]+$|^> +[0-9.]+ % (of the stacks|cut in)|^>     [a-z]' "$dir/differences"
}

formats() {
	local format inclusive

	check "levels.c is built" "${CC:-gcc}" -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -fPIE -pie -o "$dir/levels" \
		tests/programs/levels.c
	check "record -g records a recursion" "$ctl" record -q -g -F 999 -o "$dir/kept" -- "$dir/levels" 1 40 1
	for format in json folded pprof speedscope callgrind; do
		check "report writes $format of recorded stacks" "$ctl" report -f "$format" -o "$dir/$format" "$dir/kept"
	done
	check "the recursion has the samples" in_order
	inclusive=$(by_json)
	prints "folded has the inclusive samples of the recorded tree" "$inclusive" by_folded
	reads go "go tool pprof has the inclusive samples of the recorded tree" "$inclusive" by_go
	prints "speedscope has the inclusive samples of the recorded tree" "$inclusive" by_speedscope
	reads callgrind_annotate "callgrind_annotate has the inclusive samples of the recorded tree" "$inclusive" by_callgrind
	check "in each place nodes have as many samples as the flat profile" nodes_add_up
	check "text has the same table with and without stacks" same_table
}

# --- inlined functions, frames of the kernel ------------------------------------------------------

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
	cat >"$dir/inlined.c" <<-'END'
		static volatile unsigned long spun;

		static inline __attribute__((always_inline)) void inner(unsigned long n)
		{
			while (n--)
				spun++;
		}

		__attribute__((noipa)) void outer(unsigned long n)
		{
			inner(n);
		}

		int main(void)
		{
			for (int i = 0; i < 400; i++)
				outer(1000000);
			return 0;
		}
	END
	check "a program with an inlined function is built" "${CC:-gcc}" -O2 -g -fomit-frame-pointer -o "$dir/inlined" "$dir/inlined.c"
	"$ctl" record -q -g -F 999 --user-only -f folded -o "$dir/folded" -- "$dir/inlined"
	check "an inlined function is a frame below the one that contains it" mostly 200 '^inlined;' \
		'^inlined;_start;([^;]+;)*main;outer;inner$'
}

# Reads of /dev/zero use CPU time in the kernel, below read(), in libc.
kernel_frames() {
	local copy=(dd if=/dev/zero of=/dev/null bs=1M count=8000 status=none)

	"$ctl" record -q -g -F 999 --kernel-stacks -f folded -o "$dir/folded" -- "${copy[@]}"
	check "with --kernel-stacks frames of the kernel are below those of the program" mostly 100 ';vfs_read(;|$)' \
		'^dd;[^;]+;__libc_start_main[^;]*;([^;]+;)*(__)?read;([^;]+;)*ksys_read;vfs_read(;|$)'
	"$ctl" record -q -g -F 999 -f folded -o "$dir/folded" -- "${copy[@]}"
	check "without it a stack has one function of the kernel" mostly 100 '^dd;.*;(__)?read(;|$)' ';(__)?read(;[^;]*)?$'
}

# --- equal paths ----------------------------------------------------------------------------------

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

	"$ctl" record -q -g --user-only -o "$dir/known" -- "${command[@]//RUNS/1}" # makes the unwind rules of what it executes
	for runs in 2 20; do
		"$ctl" record -q -g -F 999 --user-only -f json -o "$dir/json" -- "${command[@]//RUNS/$runs}"
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
formats
inlined
kernel_frames
# shellcheck disable=SC2016 # the variable of the shell that starts them
merge "call paths of programs at different addresses merge" sh -c "for i in \$(seq RUNS); do $dir/levels 1 20 0.3; done"
merge "call paths of children merge" "$dir/levels" 1 20 0.3 RUNS
daemon_stop
finish
