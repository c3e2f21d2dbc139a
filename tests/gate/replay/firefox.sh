#!/bin/bash
# firefox.sh - Firefox Profiler's processed format, by the rules of its types, which its loader does not check
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl

# Checks the columns and indices of each thread, then prints the threads with the sums of their weights, and
# each stack with its weight; "times" prints the times of the samples and the markers instead.
cat >"$dir/read.py" <<'END'
import json, sys
profile = json.load(open(sys.argv[1]))
meta = profile["meta"]
assert meta["preprocessedProfileVersion"] == 48 and [c["color"] for c in meta["categories"]].count("grey") == 1
COLUMNS = {"samples": "stack time weight", "markers": "data name startTime endTime phase category",
           "stackTable": "frame prefix category subcategory",
           "frameTable": "address inlineDepth category subcategory func nativeSymbol innerWindowID implementation line column",
           "funcTable": "name isJS relevantForJS resource fileName lineNumber columnNumber",
           "resourceTable": "lib name host type", "nativeSymbols": "libIndex address name functionSize"}
INDICES = [("samples", "stack", "stackTable"), ("stackTable", "frame", "frameTable"), ("frameTable", "func", "funcTable"),
           ("funcTable", "resource", "resourceTable"), ("stackTable", "prefix", "stackTable")]
for t in profile["threads"]:
    for table, columns in COLUMNS.items():
        assert set(t[table]) - {"length", "weightType"} == set(columns.split()), (table, set(t[table]))
        assert all(len(t[table][c]) == t[table]["length"] for c in columns.split()), table
    for table, column, to in INDICES:
        assert all(i is None and column == "prefix" or i == -1 and column == "resource" or 0 <= i < t[to]["length"] for i in t[table][column]), column
    assert all(p is None or p < i for i, p in enumerate(t["stackTable"]["prefix"]))
    for table in "funcTable", "resourceTable", "markers":
        assert all(0 <= i < len(t["stringArray"]) for i in t[table]["name"])
    assert all(0 <= i < len(profile["libs"]) for i in t["resourceTable"]["lib"])
    assert all(0 <= c < len(meta["categories"]) for c in t["stackTable"]["category"] + t["frameTable"]["category"])
    assert t["samples"]["time"] == sorted(t["samples"]["time"]) and isinstance(t["pid"], str)
    stacks, names = t["stackTable"], t["stringArray"]
    def of(stack):
        frame = t["frameTable"]["func"][stacks["frame"][stack]]
        name = names[t["funcTable"]["name"][frame]]
        return name if stacks["prefix"][stack] is None else of(stacks["prefix"][stack]) + ";" + name
    s = t["samples"]
    if "times" in sys.argv:
        print(*(f"{of(stack)}@{time:g}={weight}" for stack, time, weight in zip(s["stack"], s["time"], s["weight"]) if "<" not in of(stack)), sep="\n")
        m = t["markers"]
        print(*(f"{a:g}..{b:g}={d['samples']}" for a, b, d in zip(m["startTime"], m["endTime"], m["data"])))
        continue
    print(t["name"], t["pid"], s["weightType"], f"{sum(s['weight']):g}")
    sums = {}
    for stack, weight in zip(s["stack"], s["weight"]):
        sums[of(stack)] = sums.get(of(stack), 0) + weight
    if "stacks" in sys.argv:
        print("\n".join(sorted(f"{name} {n:g}" for name, n in sums.items() if "<" not in name)))
END

firefox() { # PROFILE [stacks|times]
	"$ctl" report -f firefox -o "$dir/firefox" "$1" && python3 "$dir/read.py" "$dir/firefox" "${@:2}"
}

check "a profile with stacks is made" tests/programs/stacks.py "$dir/stacks"
prints "-f firefox has all stacks with their callers" "spin 1 samples 7950
[anon]+0x10000000000 10
[cut: no unwind rules];cold 20
[lost] 2
[no stack] 5
[unmatched] 3
main;hot 7000
main;hot;do_it 40
main;hot;hot 10
main;hot;hot;cold 300
main;hot;inner 500" firefox "$dir/stacks" stacks

check "a profile of processes is made" tests/programs/stacks.py "$dir/groups" groups
sed -i 's/"stacks"/"no stacks"/' "$dir/groups"
prints "-f firefox has a thread for each process" $'one 1 samples 7870\ntwo 2 samples 75\nspin 1 samples 5' firefox "$dir/groups"

# Time asleep: its weight is time.
sed 's/"tick_ns": 1000000/"tick_ns": 500000, "event": "off-cpu", "period": 500000/' "$dir/stacks" >"$dir/asleep"
prints "-f firefox has the milliseconds of time asleep" "spin 1 tracing-ms 3975" firefox "$dir/asleep"

sed 's/"tick_ns": 1000000/"tick_ns": 500000, "event": "latency", "period": 500000/' "$dir/stacks" >"$dir/latency"
prints "-f firefox has the milliseconds of latency" "spin 1 tracing-ms 3975" firefox "$dir/latency"
"$ctl" report -f firefox "$dir/latency" >"$dir/latency.json"
prints "and says what they are" "a sample stands for 0.5 ms in which a process ran" \
	jq -r '.meta.extra[0].entries[0].value' "$dir/latency.json"

# Slices have times, which samples without one follow.
check "a profile with slices is made" tests/programs/stacks.py "$dir/slices" slices
prints "-f firefox has the times of stacks, and a marker for each slice" "main;hot@0=7000
main;hot;hot@100=10
main;hot;hot;cold@111.111=30
[anon]+0x10000000000@144.444=10
main;hot;do_it@155.556=40
[unmatched]@200=3
main;hot;hot;cold@200.378=270
[cut: no unwind rules];cold@234.426=20
main;hot;inner@236.948=500
[no stack]@300=5
[lost]@305=2
0..100=7060 100..200=90 200..300=793" firefox "$dir/slices" times

check "a profile of threads is made" tests/programs/stacks.py "$dir/threads" threads
prints "-f firefox has the stacks of each thread" "spin 1 samples 5
[lost] 2
[unmatched] 3
one 1 samples 80
[cut: no unwind rules];cold 20
main;hot 60
two 1 samples 40
main;hot 40" firefox "$dir/threads" stacks
prints "-f firefox has the times of each thread" "[unmatched]@200=3
[lost]@300=2
0..100=0 100..200=0 200..300=3
main;hot@0=60
[cut: no unwind rules];cold@100=20
0..100=60 100..200=20 200..300=0
main;hot@100=40
0..100=0 100..200=40 200..300=0" firefox "$dir/threads" times
prints "stacks begin at their thread" "spin;[cut: no unwind rules];one (11);cold 20
spin;[lost] 2
spin;[unmatched] 3
spin;one (11);main;hot 60
spin;two (12);main;hot 40" "$ctl" report -f folded "$dir/threads"
prints "a cut is below the thread" "16.26 % cut in spin" sh -c "'$ctl' report '$dir/threads' | grep -o '[0-9.]* % cut in [^:]*'"
finish
