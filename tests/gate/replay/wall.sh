#!/bin/bash
# wall.sh - profiles of all time of threads, by their states
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl

# Makes $dir/wall: work() runs 10 samples, waits for a CPU for 20 and sleeps for 40, 4 of these in a stack without the
# start; a thread that never ran sleeps for 30.
make_wall() {
	python3 -c '
import json, sys
states = None, "running", "runnable", "asleep"
kinds = "whole", "no_table", "unreadable"
ends = [{"end": end, "samples": 0, "without_frame": 30 if (end, state) == ("unreadable", "asleep") else 0, **({"state": state} if state else {})}
        for state in states for end in kinds]
root = {(end["end"], end.get("state")): n for n, end in enumerate(ends)}
frames = [["main", 0, 0], ["work", 0, 256]]
nodes = []
for end, state, count in ("whole", "running", 10), ("whole", "runnable", 20), ("whole", "asleep", 36):
    nodes.append([root[end, state], 0, 0, 16, 0])
    nodes.append([len(ends) + len(nodes) - 1, 1, 0, 300, count])
nodes.append([root["no_table", "asleep"], 1, 0, 300, 4])
json.dump({
    "schema": "profil/1", "command": "work", "pid": 1, "started": 1700000000, "command_status": 0, "duration_ns": 50_000_000, "cpu_ns": 0,
    "event": "wall", "period": 1_000_000, "tick_ns": 1_000_000,
    "samples": {"total": 100, "binned": 70, "unmatched": 30, "lost": 0},
    "functions": [{"name": "work", "object": "/opt/work", "object_index": 0, "samples": 70, "offset": 256, "size": 200, "named": True}],
    "objects": [{"path": "/opt/work", "build_id": "", "vaddr": 0, "program": True}],
    "places": [[0, 300, 1, 70]], "folded": [],
    "stacks": {"samples": 100, "without": 0, "cuts": [], "ends": ends, "frames": frames, "nodes": nodes}}, open(sys.argv[1], "w"))' "$dir/wall"
}

folded() { # OPTION...
	"$ctl" report -f folded "$@" "$dir/wall" | sed 's/^work;//' | sort
}

# The totals of a profile, written and read again.
again() {
	"$ctl" report -o "$dir/again" "$dir/wall" && "$ctl" report -f folded "$dir/again" | sed 's/^work;//' | sort
}

all='[asleep, cut: no unwind rules];work 4
[asleep, cut: unreadable stack] 30
[asleep];main;work 36
[on CPU];main;work 10
[runnable];main;work 20'

check "a profile of all time is made" make_wall
check "stacks begin at their state" test "$(folded)" = "$all"
check "JSON has the states of stacks" test "$(again)" = "$all"
text=$("$ctl" report "$dir/wall")
check "text says how much time threads spent in each state" grep -qxF \
	"10.00 % on CPU, 20.00 % waiting for a CPU, 70.00 % asleep, of 2.00 threads" <<<"$text"
check "text says what a sample stands for" grep -q "^a sample stands for 1 ms of a thread's time" <<<"$text"
check "text has no intervals: samples of one wait depend on each other" test "$(grep -c "95 % of it" <<<"$text")" -eq 0
check "--tree shows the states" grep -q '^ 36.00 % * 0.00 % *\[asleep\]$' <("$ctl" report --tree "$dir/wall")
check "--callers end at the states" grep -q '^ 20.00 % *\[runnable\]$' <("$ctl" report --callers work "$dir/wall")

check "--state keeps one state" test "$(folded --state runnable)" = '[runnable];main;work 20'
check "--state keeps time without a stack" test "$("$ctl" report -f json --state asleep "$dir/wall" |
	jq -c '[.samples[("total", "binned", "unmatched")], .functions[0].samples, .event]')" = '[70,40,30,40,"wall"]'
check "the state running is a profile of CPU time" test "$("$ctl" report -f json --state running "$dir/wall" |
	jq -c '[.samples.total, .tick_ns, .event, (.stacks.ends | length)]')" = '[10,1000000,null,8]'
check "all other states are a profile of off-CPU time" test "$("$ctl" report -f json --state runnable,asleep "$dir/wall" |
	jq -c '[.samples.total, .period, .event]')" = '[90,1000000,"off-cpu"]'
check "stacks of one state have no frame of it" test "$(folded --state running)" = 'main;work 10'
check "--state and --function select together" test "$("$ctl" report -f json --state asleep --function work "$dir/wall" |
	jq -c .samples.total)" = 40

refused() { # STATUS WORDS OPTION...
	"$ctl" report "${@:3}" >"$dir/out" 2>"$dir/err"
	test $? -eq "$1" && grep -q -e "$2" "$dir/err"
}

check "an unknown state is refused" refused 2 "of running, runnable and asleep" --state awake "$dir/wall"
jq 'del(.event, .period)' "$dir/wall" >"$dir/cpu"
check "a profile without states is refused" refused 1 "does not distinguish states" --state asleep "$dir/cpu"
check "diff of two profiles of all time judges no change" grep -q "no change is judged$" <("$ctl" diff "$dir/wall" "$dir/wall")

# main() has woken up work() for 30 of its samples, an interrupt for 4; 2 and the thread that never ran are not known.
jq '.stacks.wakes = [[17, 12, 30], [17, 1, 4]]' "$dir/wall" >"$dir/woken"
wakers() { # PROFILE
	"$ctl" report --wakers work "$1" | sed -n 's/^ *\([0-9.]* %\)  *\([a-z[].*\)$/\1 \2/p' | head -n 3
}
check "--wakers shows what woke up a function" test "$(wakers "$dir/woken")" = \
	$'30.00 % main\n6.00 % [not known]\n4.00 % [interrupt]'
check "JSON keeps wakers" test "$("$ctl" report -o "$dir/again" "$dir/woken" && wakers "$dir/again")" = "$(wakers "$dir/woken")"
check "the sum of two profiles has the wakers of both" test "$("$ctl" report -o "$dir/again" "$dir/woken" "$dir/woken" &&
	wakers "$dir/again")" = "$(wakers "$dir/woken")"
chains() { # OPTION...
	"$ctl" report --chains -f folded "$@" "$dir/woken" | sed 's/^work;//' | grep woken | sort
}
woken='[asleep];main;work;[woken by];[interrupt] 4
[asleep];main;work;[woken by];main 30'
check "--chains has wakers above what slept" test "$(chains)" = "$woken"
check "a filter keeps the wakers of what it selects" test "$(chains --function work --object '*work')" = "$woken"
check "a filter removes the wakers of what it does not select" test "$(chains --function work --state running)" = ""
check "--state keeps wakers" test "$(chains --state asleep)" = "$woken"
check "--state keeps wakers where stacks have no state" test "$(chains --state runnable,asleep)" = "${woken//\[asleep\];/}"
check "--chains keeps all samples" test "$("$ctl" report --chains -f folded "$dir/woken" | awk '{ n += $NF } END { print n }')" = 100
check "--wakers without wakers is refused" refused 1 "has no wakers" --wakers work "$dir/wall"

# work() waits for a lock, which main() gives, 30 samples, for a pipe 4, and for what is not known 2.
jq '.stacks.frames += [["mutex", 0, 4096]] | .stacks.wakes = [[17, 12, 30, "futex", 2], [17, 0, 4, "pipe", null]]' "$dir/wall" >"$dir/known"
by() { # WHAT PROFILE...
	"$ctl" report -a --by "$@" | sed -nE 's/^ *([0-9.]+ %) +[0-9]+ +[0-9.]+ +(.*)$/\1 \2/p'
}
waits='30.00 % futex
20.00 % (waiting for a CPU)
10.00 % (on CPU)
6.00 % (not known)
4.00 % pipe
30.00 % (in no mapping)'
locks='40.00 % (no lock)
30.00 % mutex in work, given by main
30.00 % (in no mapping)'
check "--by wait shows what threads waited for" test "$(by wait "$dir/known")" = "$waits"
check "--by lock shows locks and what gave them" test "$(by lock "$dir/known")" = "$locks"
check "JSON keeps waits" test "$("$ctl" report -o "$dir/again" "$dir/known" && by wait "$dir/again")" = "$waits"
check "JSON keeps locks" test "$(by lock "$dir/again")" = "$locks"
check "a sum has the locks of both" test "$(by lock "$dir/known" "$dir/known")" = "$locks"
check "a filter keeps locks" grep -qxF "75.00 % mutex in work, given by main" <(by lock --state asleep --function work "$dir/known")
check "the page has locks" grep -q "By lock.*" <("$ctl" report -f html "$dir/known")
check "--by lock without waits is refused" refused 1 "record it with --wall" --by lock "$dir/wall"
no_frame() {
	jq '.stacks.wakes[0][4] = 9' "$dir/known" >"$dir/bad"
	! "$ctl" report "$dir/bad" >/dev/null 2>"$dir/err"
}
check "a lock without its frame is refused" no_frame

# Foreign readers see the states and all time.
pprof() {
	"$ctl" report -f pprof -o "$dir/pprof" "$dir/wall" && go tool pprof -top -cum -sample_index=samples "$dir/pprof" 2>/dev/null |
		awk '$6 ~ /^(main|work)$/ { print $6, $4 } /\[on CPU\]/ { print "on CPU", $4 }' | sort
}
reads go "pprof has the states" $'main 66\non CPU 10\nwork 70' pprof
perf_sum() {
	"$ctl" report -f perf -o "$dir/perf" "$dir/wall" && perf script -i "$dir/perf" -F period,event 2>/dev/null |
		awk '{ sum += $1; name = $2 } END { print name, sum }'
}
reads perf "perf has all time" "wall: 100000000" perf_sum
finish
