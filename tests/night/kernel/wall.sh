#!/bin/bash
# wall.sh - record --wall: the states of threads last as long as by their own clocks
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")

# What each function's thread did, by its own clocks and by samples of 0.1 ms, as a table of milliseconds: on the CPU,
# runnable, asleep. A row is wrong if a share differs by more than 2 points, and by more than 4 standard errors of the samples
# on the CPU; those of waits have none.
cat >"$dir/table.py" <<'END'
import re, sys
STATES = "on CPU", "runnable", "asleep"
stacks = [line.rsplit(" ", 1) for line in open(sys.argv[1])]
for line in open(sys.argv[2]):
    name, asleep, whole, ran, waited = line.split()
    own = [float(ran), float(waited), float(asleep)]
    got = [sum(int(n) for s, n in stacks if re.search(rf";\[{state}[],][^;]*;{name[:15]} \(.*;(measure;(?!begin)|__start_context;)", f"{s};")) / 10 for state in STATES]
    points = [100 * (b - a) / float(whole) for a, b in zip(own, got)]
    error = [100 * 4 * (0.1 * got[0]) ** 0.5 / float(whole), 0, 0]
    print(name, *(f"{a:.1f} {b:.1f} {p:+.2f}" for a, b, p in zip(own, got, points)),
          "ok" if all(abs(p) <= max(2, e) for p, e in zip(points, error)) else "WRONG")
END

# Where the file system has no O_DIRECT, the thread does not wait for a disk.
reads_disk() {
	"$ctl" report --by wait -a "$dir/kept" >"$dir/text"
	cat "$dir/text"
	grep -q ' disk$' "$dir/text" || ! awk '$1 == "wait_for_disk" { exit !($2 > 20) }' "$dir/limits"
}

# Each sample is divided by the threads of the process that run: of a loop alone it is its CPU time.
latency() {
	"$ctl" record -q --latency -g -F 997 -o "$dir/kept" -- "$dir/parallel" "$(nproc)" >"$dir/limits" || return
	"$ctl" report -f folded "$dir/kept" >"$dir/folded"
	awk 'NR == FNR { least[$1] = $2; most[$1] = $3; next } { for (f in least) if ($0 ~ ";" f "[; ]") got[f] += $NF }
		END { for (f in least) { ms = got[f] / 0.997; error = 0.02 * ms + 4 * sqrt(got[f]) / 0.997
			print f, ms, "ms, by itself", least[f], "to", most[f]
			if (ms < least[f] - error || ms > most[f] + error) bad = 1 }
			exit bad }' "$dir/limits" "$dir/folded"
}

# The states of one thread add up to the time that it exists.
adds_up() {
	"$ctl" record -q --wall -f json -o "$dir/json" -- sleep 3 && jq -e '.samples.total * .tick_ns / .duration_ns |
		., (. > 0.99 and . < 1.01)' "$dir/json"
}

# Of three loops on one CPU two wait at a time.
shares_a_cpu() {
	local cpu

	cpu=$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')
	# shellcheck disable=SC2016 # another shell's
	"$ctl" record -q --wall -o "$dir/kept" -- taskset -c "$cpu" sh -c '"$0" split 1 & "$0" split 1 & "$0" split 1; wait' "$dir/spin" || return
	"$ctl" report -f folded "$dir/kept" >"$dir/folded"
	awk '/\[on CPU.*;split[; ]|\[on CPU.*;work[; ]/ { a += $NF } /\[runnable.*;split[; ]|\[runnable.*;work[; ]/ { b += $NF }
		END { print a, "on CPU,", b, "runnable"; exit !(b > 1.5 * a && a > 0) }' "$dir/folded"
}

daemon_start
check "waits.c is built" "${CC:-gcc}" -O2 -fno-optimize-sibling-calls -pthread -o "$dir/waits" tests/programs/waits.c
check "spin.c is built" "${CC:-gcc}" -O2 -o "$dir/spin" tests/programs/spin.c -ldl -pthread
# The first run makes the unwind rules.
"$ctl" record -q --wall -f folded -o "$dir/folded" -- "$dir/waits" >/dev/null
record_waits() {
	"$ctl" record -q --wall --threads -F 10000 -o "$dir/kept" -- "$dir/waits" >"$dir/limits"
}
check "a program with known waits is recorded" record_waits
"$ctl" report -f folded "$dir/kept" >"$dir/folded"
python3 "$dir/table.py" "$dir/folded" "$dir/limits" >"$dir/table"
sed 's/^/# /' "$dir/table"
for function in wait_for_{lock,own_lock,time,input,poll,epoll,socket,event,process,signal,file_lock,semaphore,disk,condition,inversion} \
	wait_in_coroutine hold_inverted compute; do
	check "$function() is in each state for as long as it measured itself" grep "^$function .* ok\$" "$dir/table"
done
check "a lock that one of lower priority holds is named by its variable" grep -q ' inverted in waits$' <("$ctl" report --by lock -a "$dir/kept")
check "a read of a disk waits for a disk" reads_disk
check "parallel.c is built" "${CC:-gcc}" -O2 -pthread -o "$dir/parallel" tests/programs/parallel.c
check "latency is the time in which a process runs" latency
check "the states add up to the time of a thread" adds_up
check "of three loops on one CPU two wait at a time" shares_a_cpu
daemon_stop
finish
