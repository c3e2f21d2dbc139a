#!/bin/bash
# tick.sh - record on the timer tick, at the kernel's rate: functions of programs and of the kernel
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")
spin=$dir/spin
${CC:-gcc} -O2 -g -o "$spin" tests/programs/spin.c -ldl -pthread || exit 1

if ! command -v jq >/dev/null; then
	lacks "record profiles on the timer tick" "jq"
	finish
fi

# 6: CLOCK_MONOTONIC_COARSE, which the tick advances.
tick_ns=$(python3 -c 'import time; print(round(time.clock_getres(6) * 1e9))')
hz=$(((1000000000 + tick_ns / 2) / tick_ns))

json() { # FILTER
	jq -e "$1" "$dir/json" >/dev/null || { jq -c 'del(.objects, .places, .folded, .functions[20:])' "$dir/json"; false; }
}

# With real-time priority, if there is a second CPU for the profiler: a program that runs in slices on a busy machine has
# samples that stand for several ticks, and shares by fewer samples than are counted.
alone=(chrt --rr 1)
if test "$(nproc)" -eq 1 || ! "${alone[@]}" true; then alone=(); fi

record() { # COMMAND...
	"${alone[@]}" "$ctl" record -q -F "$hz" -o "$dir/kept" -- "$@" && "$ctl" report -f json "$dir/kept" >"$dir/json"
}

# A sample stands for the CPU time since the thread's previous tick: exact to one tick for each thread,
# and one for a thread that is sampled once. 2 % is what the accounts of a process may differ by.
accounts() {
	json "(.samples.total - .cpu_ns / .tick_ns | fabs) <= .cpu_ns / .tick_ns / 50 + 3"
}

conserved() {
	json '.samples.total == .samples.binned + .samples.unmatched + .samples.lost and
		([.functions[].samples] | add) == .samples.binned and .samples.unmatched + .samples.lost == 0'
}

# The share of FUNCTION differs from PERCENT by at most 4.2 standard deviations: by chance once in 37,000.
share() { # FUNCTION PERCENT
	json "([.functions[] | select(.name == \"$1\").percent] | add // 0) as \$percent | .samples.total as \$n |
		\$n >= 200 and (\$percent - $2 | fabs) <= 4.2 * ($2 * (100 - $2) / \$n | sqrt)"
}

# The samples of the rows of the text report with object OBJECT.
rows_of() { # OBJECT OPTION...
	COLUMNS=80 "$ctl" report --all "${@:2}" "$dir/kept" |
		awk -v object="$1" '/^ *[0-9.]+ %/ && $NF == object { n += $3 } END { print n + 0 }'
}

programs() {
	check "record profiles a program on the tick" record "$spin" split 4
	check "the rate is the kernel's" json ".tick_ns == $tick_ns"
	check "the samples of a program on the tick add up" conserved
	check "the samples of a program on the tick account for its CPU time" accounts
	check "hot has 70 % of a program on the tick" share hot 70
	check "cold has 30 % of a program on the tick" share cold 30
}

kernel() {
	local in_kernel

	check "record profiles dd on the tick" record dd if=/dev/zero of=/dev/null bs=1M count=40000 status=none
	check "the samples of dd on the tick add up" conserved
	check "the samples of dd on the tick account for its CPU time" accounts
	in_kernel=$(jq '[.functions[] | select(.object == "[kernel]").samples] | add // 0' "$dir/json")
	check "at least 90 % of dd on the tick are in the kernel" json ".samples.total >= 50 and $in_kernel * 10 >= .samples.total * 9"
	check "functions of the kernel have names on the tick" json \
		'[.functions[] | select(.object == "[kernel]")] | all(.named and .name != "[kernel]")'
	check "the hottest function of dd on the tick is the kernel's" json '.functions[0].object == "[kernel]"'
	check "the text has rows of the kernel with all its samples" test "$(rows_of '[kernel]')" -eq "$in_kernel"
	check "the text says how much is in the kernel" grep -Eq '; (9[0-9]|100)[.][0-9]+ % in the kernel, ' <("$ctl" report "$dir/kept")
	check "--fold-kernel leaves no row of the kernel" test "$(rows_of '[kernel]' --fold-kernel)" -eq 0
	"$ctl" report --fold-kernel -f json "$dir/kept" >"$dir/json"
	# A process enters the kernel at its start before it has a user pc.
	check "--fold-kernel changes no total" json "(.samples | .total == .binned + .unmatched and .unmatched <= 3) and
		([.functions[].samples] | add) == .samples.binned"
	# dd reads and writes by functions of libc.
	check "--fold-kernel counts the kernel's samples where dd entered it" json "[.functions[] |
		select(.object | test(\"/(libc[.]so[.6]*|dd)$\")).samples] | add >= $in_kernel * 9 / 10"
}

daemon_start --clock tick --rate "$hz"
programs
kernel
check "the daemon holds no perf event on the tick" test -z "$(find "/proc/$daemon/fd" -lname 'anon_inode:*perf_event*')"
daemon_stop
finish
