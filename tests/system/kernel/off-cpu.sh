#!/bin/bash
# off-cpu.sh - record --off-cpu: how long threads sleep, by the functions that wait
# shellcheck source=tests/system/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

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

# A sleep that has not ended counts until the end of the recording. The recording's time begins after the start of
# sleep(1), within half a second on any machine that is not frozen, and sleep(1) sleeps within a second.
unfinished() {
	"$ctl" record --off-cpu -d 3 -f json -o "$dir/json" -- sleep 1000 || return
	kill "$(jq .pid "$dir/json")"
	jq -e '.samples.total * .tick_ns < .duration_ns + 5e8 and .samples.total * .tick_ns > .duration_ns - 1e9' "$dir/json"
}

kernel_frames() {
	"$ctl" record --off-cpu --kernel-stacks -f folded -o "$dir/folded" -- sleep 0.3 || return
	grep -qE '[^;]*nanosleep;([^;]*;)+(do_nanosleep|hrtimer_nanosleep)[^;]* (29[89]|[3-9][0-9][0-9])$' "$dir/folded" || {
		cat "$dir/folded"
		return 1
	}
	! grep -qE 'bpf_|sched_switch|__schedule' "$dir/folded"
}

user_only_is_refused() {
	! "$ctl" record --off-cpu --user-only -- true 2>"$dir/err" && grep -q "leave out --user-only" "$dir/err"
}

daemon_start
check "waits.c is built" "${CC:-gcc}" -O2 -fno-optimize-sibling-calls -pthread -o "$dir/waits" tests/system/programs/waits.c
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
	check "text says what a sample stands for" \
		grep -q "a sample stands for 0.1 ms in which a thread slept" <("$ctl" report "$dir/kept")
else
	fail "record --off-cpu" "$(cat "$dir/err")"
fi
check "a sleep that has not ended is counted" unfinished
check "kernel stacks of sleeps begin at what waits, not in the scheduler" kernel_frames
check "--user-only is refused: threads sleep in the kernel" \
	user_only_is_refused
check "list --events names off-cpu" grep -qx off-cpu <("$ctl" list --events)
daemon_stop
finish
