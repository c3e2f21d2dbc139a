#!/bin/bash
# wall.sh - record --wall: the states of threads last as long as by their own clocks
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")

# The ms in STATE below FUNCTION, in samples of 0.1 ms.
in_state() { # STATE FUNCTION
	grep -E "(^|;)\[$1[],].*;$2(;| )" "$dir/folded" | awk '{ n += $NF } END { print n / 10 }'
}

# The program's own account of its sleep has no CPU time, and no wait for a CPU. That is accounted in steps of the
# tick, 10 ms at most.
asleep() { # FUNCTION
	local least most got

	read -r _ least most < <(grep "^$1 " "$dir/limits")
	got=$(in_state asleep "$1")
	echo "$got ms, by itself $least to $most"
	awk -v got="$got" -v least="$least" -v most="$most" 'BEGIN { exit !(got >= least - 10 && got <= most + 0.2) }'
}

# hold_inverted() needs 5 ms of CPU time, and its lock is waited for as long as it waits for a CPU.
inverted() {
	local running runnable waited

	running=$(in_state "on CPU" hold_inverted)
	runnable=$(in_state runnable hold_inverted)
	waited=$(in_state asleep wait_for_inversion)
	echo "$running ms on CPU, $runnable ms runnable, waited for during $waited ms"
	"$ctl" report --by lock -a "$dir/kept" | grep -q ' inverted in waits$' &&
		awk -v a="$running" -v b="$runnable" -v c="$waited" 'BEGIN { exit !(a > 1 && b > 5 * a && c > b / 2) }'
}

# compute() loops for 200 ms, on the CPU or waiting for one.
computes() {
	local running runnable

	running=$(in_state "on CPU" compute)
	runnable=$(in_state runnable compute)
	echo "$running ms on CPU, $runnable ms runnable"
	awk -v a="$running" -v b="$runnable" 'BEGIN { exit !(a + b > 190 && a + b < 210) }'
}

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
	"$ctl" record -q --wall -F 10000 -o "$dir/kept" -- "$dir/waits" >"$dir/limits"
}
check "a program with known waits is recorded" record_waits
"$ctl" report -f folded "$dir/kept" >"$dir/folded"
for function in wait_for_{lock,own_lock,time,input,poll,epoll,socket,event,process,signal,file_lock,semaphore,disk,condition,inversion} wait_in_coroutine; do
	check "$function() is asleep for as long as it measured itself" asleep "$function"
done
check "what keeps a lock from a thread of higher priority has waited for a CPU" inverted
check "a loop is on the CPU or runnable for as long as it lasts" computes
check "a read of a disk waits for a disk" reads_disk
check "parallel.c is built" "${CC:-gcc}" -O2 -pthread -o "$dir/parallel" tests/programs/parallel.c
check "latency is the time in which a process runs" latency
check "the states add up to the time of a thread" adds_up
check "of three loops on one CPU two wait at a time" shares_a_cpu
daemon_stop
finish
