#!/bin/bash
# off-cpu.sh - record --off-cpu: how long threads sleep, by the functions that wait
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")

# The samples of 0.1 ms whose stacks go through FUNCTION are between what the program says, as it measured
# itself. CPU time is accounted in steps of the tick, 10 ms at most, so that LEAST may be that much too high.
through() { # FUNCTION
	local n least most

	read -r _ least most < <(grep "^$1 " "$dir/limits")
	n=$(grep -E ";$1(;| )" "$dir/folded" | awk '{ n += $NF } END { print n + 0 }')
	if awk -v n="$n" -v least="$least" -v most="$most" \
		'BEGIN { exit !(n * 0.1 >= least - 10 && n * 0.1 <= most + 0.2) }'; then
		ok "off-CPU time of $1() is as it measured itself"
	else
		fail "off-CPU time of $1() is as it measured itself" \
			"$n samples of 0.1 ms, $least to $most ms: $(cat "$dir/folded")"
	fi
}

# All samples reach main() or the start of a thread, and the flat profile has as many.
whole() {
	jq -e '.event == "off-cpu" and .period == 100000 and .tick_ns == 100000 and .samples.lost == 0 and
		.samples.unmatched == 0 and ([.functions[].samples] | add) == .samples.total' "$dir/json" || return
	test "$(awk '{ n += $NF } END { print n }' "$dir/folded")" = "$(jq .samples.total "$dir/json")"
}

asleep() { # PID
	grep -q '^[0-9]* (sleep) S' "/proc/$1/stat"
}

# A sleep that has not ended counts until the end of the recording: at least from when it is seen to when the recording is
# told to end, at most from the recording's start to its end.
unfinished() {
	local record pid='' began seen told ended

	began=$(date +%s%N)
	"$ctl" record --off-cpu -f json -o "$dir/json" -- sleep 1000 &
	record=$!
	until pid=$(pgrep -P "$(pgrep -d , -P "$record")" -x sleep) && asleep "$pid"; do alive "$record" || return; done
	seen=$(date +%s%N)
	sleep 2
	told=$(date +%s%N)
	kill -INT "$record"
	wait "$record" || return
	ended=$(date +%s%N)
	kill "$pid"
	jq -e --argjson least "$((told - seen))" --argjson most "$((ended - began))" \
		'.samples.total * .tick_ns | ., $least, $most, (. > $least - 1e7 and . < $most + 1e7)' "$dir/json"
}

kernel_frames() {
	"$ctl" record --off-cpu --kernel-stacks -f folded -o "$dir/folded" -- sleep 0.3 || return
	grep -qE '[^;]*nanosleep;([^;]*;)+(do_nanosleep|hrtimer_nanosleep)[^;]* (29[89]|[3-9][0-9][0-9]|[0-9]{4,})$' "$dir/folded" || {
		cat "$dir/folded"
		return 1
	}
	! grep -qE 'bpf_|sched_switch|__schedule' "$dir/folded"
}

# Another program at the tracepoint puts one more function below what waits.
kernel_frames_beside_perf() {
	local perf ack='' control answer

	mkfifo "$dir/ctl" "$dir/ack"
	perf record -q -e sched:sched_switch -a -D -1 --control "fifo:$dir/ctl,$dir/ack" -o "$dir/perf" -- sleep 1000 >"$dir/said" 2>&1 &
	perf=$!
	exec {control}<>"$dir/ctl" {answer}<>"$dir/ack" # if perf does not begin, this does not wait for it
	echo enable >&"$control"
	until read -r -t 1 ack <&"$answer"; do alive "$perf" || break; done
	exec {control}>&- {answer}>&-
	if test "$ack"; then
		kernel_frames
	else
		cat "$dir/said"
		false
	fi
	set -- $?
	kill "$perf"
	wait "$perf" 2>/dev/null
	return "$1"
}

# The program stays linked for a second, in which another event can get off-CPU time's number.
other_event() {
	"$ctl" record -q --off-cpu -o "$dir/slept" -- sleep 0.1 &&
		"$ctl" record -q -e page-faults -o "$dir/faults" -- true &&
		"$ctl" report -f json "$dir/faults" | jq -e '.samples.total > 10 and .samples.total < 2000'
}

refused() { # WORDS OPTION...
	local words=$1 status

	shift
	"$ctl" "$@" 2>"$dir/err"
	status=$?
	if test "$status" -ne 2 || ! grep -q -e "$words" "$dir/err"; then
		cat "$dir/err"
		return 1
	fi
}

daemon_start
check "waits.c is built" "${CC:-gcc}" -O2 -fno-optimize-sibling-calls -pthread -o "$dir/waits" tests/programs/waits.c
# The first run makes the unwind rules.
"$ctl" record -q --off-cpu -f folded -o "$dir/folded" -- "$dir/waits" >/dev/null
rm -f "$dir/folded"
if "$ctl" record --off-cpu -c 100000 -o "$dir/kept" -- "$dir/waits" >"$dir/limits" 2>"$dir/err"; then
	"$ctl" report -f folded "$dir/kept" >"$dir/folded"
	"$ctl" report -f json "$dir/kept" >"$dir/json"
	for function in wait_for_lock wait_for_time wait_for_input compute; do
		through "$function"
	done
	check "stacks of sleeps add up to the flat profile" whole
	COLUMNS=160 "$ctl" report "$dir/kept" >"$dir/text"
	check "text has no intervals: samples of one sleep depend on each other" test "$(grep -c "95 % of it" "$dir/text")" -eq 0
	"$ctl" diff "$dir/kept" "$dir/kept" >"$dir/text"
	check "diff calls no change of sleeps significant" grep -q "no change is judged$" "$dir/text"
	check "text says what a sample stands for" \
		grep -q "a sample stands for 0.1 ms in which a thread slept" <("$ctl" report "$dir/kept")
else
	fail "record --off-cpu" "$(cat "$dir/err")"
fi
check "a sleep that has not ended is counted" unfinished
check "kernel stacks of sleeps begin at what waits, not in the scheduler" kernel_frames
if command -v perf >/dev/null; then
	check "kernel stacks of sleeps begin at what waits while perf traces sched_switch" kernel_frames_beside_perf
else
	lacks "kernel stacks of sleeps begin at what waits while perf traces sched_switch" "perf"
fi
check "an event after it counts no sleeps" other_event
check "--user-only is refused: threads sleep in the kernel" refused "leave out --user-only" record --off-cpu --user-only -- true
check "a sleep is in all slices that it lasts" sh -c "'$ctl' record -q --off-cpu --slices 20x0.1 -F 1000 -o '$dir/sliced' -- sleep 1 &&
	jq -e '[.stacks.times[1:9][] | [.[range(1; length; 2)]] | add] | length == 8 and all(. > 90 and . < 110)' '$dir/sliced'"
check "a count below 1000 ns is refused" refused "from 1000 to" record --off-cpu -c 999 -- true
check "a second event is refused" refused "there is another event" record --off-cpu -e page-faults -- true
check "diff refuses profiles of different events" refused "samples of off-cpu, .* of page-faults" diff "$dir/slept" "$dir/faults"
check "list --events names off-cpu" grep -qx off-cpu <("$ctl" list --events)
daemon_stop
finish
