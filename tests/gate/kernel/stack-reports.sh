#!/bin/bash
# stack-reports.sh - recorded stacks: the same numbers in every format; inlined functions, frames of the kernel, equal paths
# shellcheck source=tests/lib/recorded_stacks.sh
. "$(dirname "$0")/../../lib/recorded_stacks.sh"

# --- one recording in every format ----------------------------------------------------------------

# Inclusive samples as by_json() prints them, by the readers of other formats.
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

# Samples are in leaf() and below recur(), and main() has all of them.
in_order() {
	by_json | awk '{ n[$1] = $2 } END { print n["leaf"], n["recur"], n["main"]
		exit !(n["leaf"] > 0 && n["recur"] > 0 && n["main"] >= n["recur"] && n["main"] >= n["leaf"]) }'
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

	record_recursion kept
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

# ok when there are samples whose stacks match REGEX. Others are of the first milliseconds, before the rules are made.
has_stack() { # REGEX
	grep -qE "$1" "$dir/folded" || { head -c 2000 "$dir/folded"; return 1; }
}

inlined() {
	record_inlined
	check "an inlined function is a frame below the one that contains it" has_stack \
		'^inlined;_start;([^;]+;)*main;outer;inner [0-9]+$'
}

kernel_frames() {
	record_copy --kernel-stacks
	check "with --kernel-stacks frames of the kernel are below those of the program" has_stack \
		'^dd;[^;]+;__libc_start_main[^;]*;([^;]+;)*(__)?read;([^;]+;)*ksys_read;vfs_read(;.*)? [0-9]+$'
	record_copy
	check "without it a stack has one function of the kernel" has_stack ';(__)?read(;[^;]*)? [0-9]+$'
}

# --- the page of system calls at a fixed address ---------------------------------------------------

# An old static program calls time() there; the kernel emulates it, and the page has neither VMA nor unwind rules.
vsyscall() {
	local name="stacks of a call into the vsyscall page reach the program's main()"

	grep -q '^ffffffffff600000-.*x' /proc/self/maps || { skip "$name" "no vsyscall page" && return; }
	"${CC:-gcc}" -O1 -static -o "$dir/old" -x c - <<-'END' || return
		int main(void)
		{
			long (*old_time)(long *) = (long (*)(long *))0xffffffffff600400ul;

			for (int i = 0; i < 300000; i++)
				old_time(0);
			return 0;
		}
	END
	record folded -f folded -- "$dir/old"
	check "$name" has_stack '^old;_start;.*;main;[^;]+ [0-9]+$'
	check "no stack is cut in the vsyscall page" sh -c "! grep 'not in code' '$dir/folded'"
}

# --- a return address in a register ----------------------------------------------------------------

# The child of vfork() runs on its parent's stack, so vfork() keeps its return address in a register meanwhile.
vforks() {
	local name="stacks in vfork() reach the program's main()"

	"${CC:-gcc}" -O1 -g -static -o "$dir/parent" -x c - <<-'END' || return
		#include <sys/wait.h>
		#include <unistd.h>

		int main(void)
		{
			for (int i = 0; i < 100; i++) {
				if (vfork() == 0)
					_exit(0);
				wait(NULL);
			}
			return 0;
		}
	END
	rm "$dir/folded"
	"$ctl" record -q -g -e sched:sched_process_fork -c 1 -f folded -o "$dir/folded" -- "$dir/parent"
	check "$name" has_stack '^parent;_start;.*;main;[a-z_]*vfork;[^;]+ 100$'
}

# --- equal paths ----------------------------------------------------------------------------------

# Each path has one node, whichever process it comes from.
merged() {
	jq -e '.stacks.nodes | map(.[0:4]) | length > 20 and length == (unique | length)' "$dir/json"
}

# ok when the paths of four runs are the same nodes.
merge() { # NAME COMMAND...
	record json -f json --user-only -- "${@:2}"
	check "$1" merged
}

# The dynamic linker of a command is asked for its libraries. This one pauses when it has an operand, and
# links nothing: the command ends in any way.
silent_linker() {
	echo 'int pause(void); int main(int n) { while (n > 1) pause(); return 0; }' |
		${CC:-gcc} -static -o "$dir/linker" -xc - &&
		echo 'int main(void) { return 0; }' |
		${CC:-gcc} -o "$dir/command" -xc - -Wl,--dynamic-linker="$dir/linker" || return
	(ulimit -c 0 && "$ctl" record -g -q -f json -o "$dir/silent" -- "$dir/command" 2>/dev/null)
	grep -q '"command_status":' "$dir/silent"
}

daemon_start
check "record -g does not wait for a dynamic linker that does not answer" silent_linker
formats
inlined
kernel_frames
vsyscall
vforks
# shellcheck disable=SC2016 # the variable of the shell that starts them
merge "call paths of programs at different addresses merge" sh -c "for i in 1 2 3 4; do $levels 1 20 0.3; done"
merge "call paths of children merge" "$levels" 1 20 0.3 4
daemon_stop
finish
