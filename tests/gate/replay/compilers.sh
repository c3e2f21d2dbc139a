#!/bin/bash
# compilers.sh - profiles that compilers and optimizers take, of known counts at known lines
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
clang=$(command -v clang-19 || command -v clang)
needs "${clang:-clang}" "profiles for compilers"

# Builds $dir/sites with DWARF VERSION.
build() { # VERSION
	"$clang" -O2 -g "-gdwarf-$1" -fdebug-info-for-profiling -no-pie -Wl,--build-id -o "$dir/sites" tests/programs/sites.c
}

# Writes a profile of $dir/sites: COUNT samples at each symbol, and at no symbol 5.
keep() { # FILE SYMBOL=COUNT...
	python3 - "$dir/sites" "$@" <<'END'
import json, re, subprocess, sys
program, out, counts = sys.argv[1], sys.argv[2], dict(c.split("=") for c in sys.argv[3:])
def run(*command): return subprocess.run(command, capture_output=True, text=True, check=True).stdout
load = next(line.split() for line in run("readelf", "-lW", program).splitlines() if " R E " in line)
vaddr = {line.split()[2]: int(line.split()[0], 16) for line in run("nm", program).splitlines() if line.split()[-1] in counts}
places = [[0, vaddr[s] - int(load[2], 16) + int(load[1], 16), 1, int(n)] for s, n in counts.items()]
build_id = re.search("Build ID: (.*)", run("readelf", "-nW", program))[1]
binned = sum(p[3] for p in places)
json.dump({"schema": "profil/1", "command": program, "pid": 1, "started": 1700000000, "command_status": 0, "tick_ns": 1000000,
           "duration_ns": 10**9, "cpu_ns": 0, "samples": {"total": binned + 5, "binned": binned, "unmatched": 5, "lost": 0},
           "functions": [{"name": "all", "object": program, "samples": binned, "offset": min(p[1] for p in places), "size": 4096, "named": True}],
           "objects": [{"path": program, "build_id": build_id, "program": True}], "places": places}, open(out, "w"))
END
}

# Makes the kept profile one of branches: COUNT records of a branch FROM..TO, or FROM..TO..END where the code ran
# to END without another. Each is a symbol of the program, an address as 0x1139, or elsewhere.
keep_branches() { # FILE FROM..TO[..END]=COUNT...
	local file=$1

	shift
	keep "$file" main=1 && python3 - "$file" "$(nm "$dir/sites")" "$(readelf -lW "$dir/sites")" "$@" <<'END'
import json, sys
file, names, segments, records = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
load = next(line.split() for line in segments.splitlines() if " R E " in line)
shift = int(load[1], 16) - int(load[2], 16)
address = {line.split()[-1]: int(line.split()[0], 16) + shift for line in names.splitlines() if len(line.split()) == 3}
p = json.load(open(file))
p["objects"].append({"path": "/elsewhere", "build_id": ""})
nodes, places, total = [], {}, 0
def node(parent, name, outer, count):
    at = int(name, 16) + shift if name.startswith("0x") else address.get(name, 4096)
    key = [parent, len(nodes), int(name == "elsewhere"), at + outer]
    found = next((i for i, n in enumerate(nodes) if [n[0], n[2], n[3]] == [parent, *key[2:]]), None)
    if found is None:
        found = len(nodes)
        nodes.append([*key, 0])
    nodes[found][4] += count
    return found + 1
for record in records:
    names, count = record.split("=")
    names, parent, count = names.split(".."), 0, int(count)
    for i, name in enumerate(names):
        last = i == len(names) - 1
        parent = node(parent, name, not last, count if last else 0)
    place = tuple(nodes[parent - 1][2:4])
    places[place] = places.get(place, 0) + count
    total += count
p["stacks"] = {"samples": total, "without": 0, "ends": [{"end": "whole", "samples": total, "without_frame": 0}], "cuts": [],
               "frames": [[None, n[2], n[3]] for n in nodes], "nodes": nodes}
p.update(event="taken-branches", period=0, tick_ns=0, places=[[o, at, 1, n] for (o, at), n in places.items()])
p["samples"] = {"total": total, "binned": total, "unmatched": 0, "lost": 0}
p["functions"][0]["samples"] = total
json.dump(p, open(file, "w"))
END
}

lines='main:70:0
 4: 70
outer:110:10
 2: 10
 3: inner:100
  2: 20
  3.1: 30
  3.2: 50'
for version in 4 5; do
	check "a program with DWARF $version is built" build $version
	check "a profile of it is made" keep "$dir/kept" in_main=70 outer=3 in_outer=7 in_inner=20 in_block=30 in_other=50
	prints "-f llvm has lines, discriminators and inlined functions of DWARF $version" "$lines" "$ctl" report -f llvm "$dir/kept"
done
"$ctl" report -f llvm -o "$dir/llvm" "$dir/kept"
show() {
	llvm-profdata show --sample "$dir/llvm" | grep -E 'Function|inlined callee'
}
reads llvm-profdata "llvm-profdata reads the profile" 'Function: outer: 110, 10, 1 sampled lines
  3: inlined callee: inner: 100, 0, 3 sampled lines
Function: main: 70, 0, 1 sampled lines' show
# The entry count of a function is that of its first block, and one more.
taken() {
	"$clang" -O2 -g -fprofile-sample-use="$dir/llvm" -S -emit-llvm -o - tests/programs/sites.c |
		sed -n 's/.*function_entry_count", i64 //p'
}
prints "clang takes the profile" $'11}\n1}\n-1}' taken

# A line ran as often as its most frequent code, from the targets of branches to the next ones.
check "a profile of its branches is made" keep_branches "$dir/branches" in_main..outer..in_block=30 in_main..in_outer..in_inner=20 \
	elsewhere..main..in_main=8 in_main..elsewhere=5 in_main..in_other=3
ran() {
	"$ctl" report -f llvm "$dir/branches" | sed -n -e 's/^\([a-z]*\):[0-9]*:/\1 /p' -e 's/^ \([24]\): /line \1 /p' -e 's/^  2: /inner line 2 /p'
}
prints "-f llvm of branches counts the code between them" "main 8
line 2 8
line 4 8
outer 50
line 2 50
inner line 2 50" ran
both() {
	cp "$dir/branches" "$dir/branches.too"
	optimize -f bolt -o "$dir/preaggregated" "$dir/sites" "$dir/branches" "$dir/branches.too" && grep -c '^F .* 60$' "$dir/preaggregated"
}

# optimize adds up the profiles of a build, by its build id.
optimize() { # ARGS...
	"$ctl" optimize "$@" 2>&1
}
build_id=$(readelf -nW "$dir/sites" | sed -n 's/.*Build ID: //p')
check "another profile of the program is made" keep "$dir/more" in_main=30 in_block=1
sed "s/$build_id/0123456789abcdef0123/" "$dir/more" >"$dir/other"
sed -e "s/$build_id/0123456789abcdef0123/" -e 's,/sites",/elsewhere",g' "$dir/more" >"$dir/elsewhere"
prints "optimize says which profiles are of the program" "profilctl: $dir/other is of another build of sites: build id 0123456789abcdef0123, and not $build_id
profilctl: $dir/elsewhere has no samples of sites
$dir/sites.prof: 211 samples of 2 profiles of build $build_id
  clang -O2 -g -fdebug-info-for-profiling -fprofile-sample-use=$dir/sites.prof ..." \
	optimize -o "$dir/sites.prof" "$dir/sites" "$dir/kept" "$dir/other" "$dir/more" "$dir/elsewhere"
sed -e 's/ 4: 70/ 4: 100/' -e 's/main:70/main:100/' -e 's/3.1: 30/3.1: 31/' -e 's/110:/111:/' -e 's/inner:100/inner:101/' <<<"$lines" >"$dir/sum"
check "it adds them up" cmp "$dir/sum" "$dir/sites.prof"
merged() {
	"$ctl" report -f llvm -o "$dir/more.llvm" "$dir/more" && llvm-profdata merge --sample --text -o "$dir/merged" "$dir/llvm" "$dir/more.llvm" &&
		llvm-profdata show --sample "$dir/merged" >"$dir/merged.text" && llvm-profdata show --sample "$dir/sites.prof" | cmp - "$dir/merged.text" && echo same
}
reads llvm-profdata "llvm-profdata adds them up to the same" same merged
prints "optimize adds up branches" "$dir/preaggregated: 132 samples of 2 profiles of build $build_id
  llvm-bolt $dir/sites -aggregate-only -pa -p $dir/preaggregated -o $dir/preaggregated.fdata
  llvm-bolt $dir/sites -o $dir/sites.bolt -data=$dir/preaggregated.fdata -reorder-blocks=ext-tsp -reorder-functions=hfsort
1" both
prints "optimize refuses branches with other samples" "profilctl: optimize: $dir/branches: branches and other samples do not add up: give profiles of one kind" \
	optimize -o "$dir/none" "$dir/sites" "$dir/kept" "$dir/branches"
prints "optimize refuses a profile of another build" "profilctl: $dir/other is of another build of sites: build id 0123456789abcdef0123, and not $build_id
profilctl: optimize: no profile is of this build of sites" optimize -o "$dir/none" "$dir/sites" "$dir/other"
prints "optimize refuses --check without the program to compare with" \
	"profilctl: optimize: --check runs the program and the optimized one in turns: give --optimized FILE with it" \
	optimize --check '{}' "$dir/sites"

# Each once before, then in turns; which is first alternates.
cp "$dir/sites" "$dir/it's"
turns() {
	optimize --rounds 8 --optimized "$dir/it's" --check "echo {} >>$dir/turns" "$dir/sites" | grep -c 'medians of 8 runs each, in turns' &&
		sed 's,.*/,,' "$dir/turns" | paste -sd ' '
}
prints "--check runs both programs in turns" "1
sites it's sites it's it's sites sites it's it's sites sites it's it's sites sites it's it's sites" turns
prints "--check ends when the command fails" "profilctl: optimize: the command of --check ended with status 3: '$dir/sites'; exit 3" \
	optimize --optimized "$dir/it's" --check '{}; exit 3' "$dir/sites"

# BOLT needs relocations, and two local functions of one name: their files tell them apart.
check "a program with relocations is built" "$clang" -O2 -g -Wl,--build-id -Wl,--emit-relocs -o "$dir/sites" tests/programs/sites.c
check "a profile of it is made" keep "$dir/kept" in_main=70 in_outer=7 in_local=4
# Its offset from FUNCTION, in hexadecimal.
at() { # SYMBOL FUNCTION
	printf '%x' $((0x$(nm "$dir/sites" | awk -v s="$1" '$3 == s { print $1 }') - 0x$(nm "$dir/sites" | awk -v s="$2" '$3 == s { print $1 }')))
}

jq '.event = "wall" | .period = .tick_ns' "$dir/kept" >"$dir/waits"
for format in llvm bolt; do
	check "-f $format refuses time that threads wait" sh -c "! '$ctl' report -f $format '$dir/waits' >'$dir/out' 2>'$dir/err' &&
		grep -q 'try --state running' '$dir/err' && test ! -s '$dir/out'"
done
prints "-f bolt has functions and offsets" "no_lbr cpu-clock
1 outer 0 7
1 main $(at in_main main) 70
1 local/sites.c/1 $(at in_local local) 4" "$ctl" report -f bolt "$dir/kept"
"$ctl" report -f bolt -o "$dir/bolt" "$dir/kept"
# BOLT counts a sample as 1000.
optimized() {
	llvm-bolt-19 "$dir/sites" -o "$dir/sites.bolt" -data="$dir/bolt" -nl -reorder-blocks=ext-tsp -print-cfg 2>&1 |
		awk '/basic samples/; /^Binary Function/ { name = $3 } /^  Exec Count  : [1-9]/ { print name, $4 / 1000 }' && "$dir/sites.bolt"
}
reads_by_night llvm-bolt-19 "BOLT takes the profile, with all samples of each function" 'BOLT-INFO: operating with basic samples profiling data (no LBR).
"outer" 7
"main" 70
"local/1(*2)" 4' optimized

check "a profile of its branches is made" keep_branches "$dir/branches" in_main..outer..in_inner=30 in_main..outer..in_outer=4 \
	elsewhere..main..in_main=8 in_main..elsewhere=5 in_inner..in_block=3
address() {
	nm "$dir/sites" | awk -v s="$1" '$3 == s { sub("^0*", "", $1); print $1 }'
}
prints "-f bolt has branches, and code that ran without any" "B $(address in_inner) $(address in_block) 3 0
B $(address in_main) $(address outer) 34 0
B $(address in_main) X:0 5 0
B X:0 $(address main) 8 0
F $(address outer) $(address in_outer) 4
F $(address outer) $(address in_inner) 30
F $(address main) $(address in_main) 8" "$ctl" report -f bolt "$dir/branches"
"$ctl" report -f bolt -o "$dir/bolt" "$dir/branches"
aggregated() {
	llvm-bolt-19 "$dir/sites" -aggregate-only -pa -p "$dir/bolt" -o "$dir/fdata" 2>&1 |
		sed -n -e '/read .* entries/p' -e '/mismatching/p' && grep outer "$dir/fdata"
}
reads_by_night llvm-bolt-19 "BOLT takes the branches" "PERF2BOLT: read 7 aggregated LBR entries
PERF2BOLT: traces mismatching disassembled function contents: 0 (0.0%)
1 main $(at in_main main) 1 outer 0 0 34
1 outer 0 1 outer 1 0 30
1 outer 1 1 outer $(at in_block outer) 0 3" aggregated

# All branches that a program takes, each once, count how often its lines are executed.
traced() { # as keep_branches() takes them
	python3 - "$(objdump -d --no-show-raw-insn "$dir/sites")" "$dir/steps" <<'END'
import collections, re, sys
listed = [int(m[1], 16) for m in re.finditer(r"^ *([0-9a-f]+):\t", sys.argv[1], re.M)]
following = dict(zip(listed, listed[1:]))
steps = [None if line == "-\n" else int(line, 16) for line in open(sys.argv[2])]
taken = [(a, b) for a, b in zip(steps, steps[1:]) if a is None or following.get(a) != b]
counts = collections.Counter((a, b, after[0]) for (a, b), after in zip(taken, taken[1:]))
for record, n in counts.items():
    print("..".join("elsewhere" if at is None else hex(at) for at in record[:3 if None not in record[1:] else 2]) + f"={n}")
END
}
check "a program with known counts is built" "$clang" -O0 -g -fdebug-info-for-profiling -fPIE -pie -Wl,--build-id -o "$dir/sites" tests/programs/kinds.c
check "a program that follows another is built" "${CC:-gcc}" -O2 -o "$dir/step" tests/programs/steps.c
check "it follows the program" "$dir/step" "$dir/sites" "$dir/steps"
mapfile -t records < <(traced)
check "a profile of all branches is made" keep_branches "$dir/branches" "${records[@]}"
executed() {
	"$ctl" report -f llvm "$dir/branches" | sed -n '/^kind:/,/^main:/s/^\(kind:\)[0-9]*\|^ \([2-7]:\) /\1\2/p'
}
prints "-f llvm of branches has the number of executions of each line" "kind::100
2:100
3:7
4:93
5:50
6:43
7:100" executed

check "a program without debug information is built" "$clang" -O2 -no-pie -Wl,--build-id -o "$dir/sites" tests/programs/sites.c
check "a profile of it is made" keep "$dir/kept" in_main=70
prints "-f llvm refuses a program without line numbers" "profilctl: cannot write $dir/none: the file of the program with the most samples has no line numbers, for -f bolt no symbols, or is no longer the one that was profiled (build it with -g; clang also with -fdebug-info-for-profiling)" \
	"$ctl" report -f llvm -o "$dir/none" "$dir/kept"
check "a program without symbols is made" strip "$dir/sites"
check "-f bolt refuses it" test "$("$ctl" report -f bolt -o "$dir/none" "$dir/kept" 2>&1 | grep -c 'for -f bolt no symbols')" -eq 1
check "no file is written then" test ! -e "$dir/none"
finish
