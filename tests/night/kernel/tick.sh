#!/bin/bash
# tick.sh - record on the timer tick, at the kernel's rate: functions of programs and of the kernel
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
# shellcheck source=tests/lib/verdict.sh
. tests/lib/verdict.sh

ctl=$(realpath "$BUILD/profilctl")
spin=$dir/spin
${CC:-gcc} -O2 -g -o "$spin" tests/programs/spin.c -ldl -pthread || exit 1

needs jq "record profiles on the timer tick"

# 6: CLOCK_MONOTONIC_COARSE, which the tick advances.
tick_ns=$(python3 -c 'import time; print(round(time.clock_getres(6) * 1e9))')
hz=$(((1000000000 + tick_ns / 2) / tick_ns))

json() { # FILTER
	jq -e "$1" "$dir/json" >/dev/null || { jq -c 'del(.objects, .places, .folded, .functions[20:])' "$dir/json"; false; }
}

record() { # COMMAND...
	"$ctl" record -q -F "$hz" -o "$dir/kept" -- "$@" && "$ctl" report -f json "$dir/kept" >"$dir/json"
}

# Prints the CPU time that the samples of a run of two seconds stand for, in that of the command.
accounted() { # FACTOR
	record "$spin" split $((2 * $1)) 2>/dev/null && jq -e '.samples.total * .tick_ns / .cpu_ns' "$dir/json"
}

conserved() {
	json '.samples.total == .samples.binned + .samples.unmatched + .samples.lost and
		([.functions[].samples] | add) == .samples.binned and .samples.unmatched + .samples.lost == 0'
}

# Prints the share of hot in it and cold.
# shellcheck disable=SC2016 # jq's variables
hot_share() { # FACTOR
	record "$spin" split $((2 * $1)) 2>/dev/null && jq -e '[.functions[] | select(.name == "hot").samples] as $hot |
		[.functions[] | select(.name == "cold").samples] as $cold |
		($hot + $cold | add) as $n | select($n >= 200) | ($hot | add) / $n' "$dir/json"
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
	equivalent "the samples of a program on the tick account for its CPU time" 1 0.01 accounted
	equivalent "hot has 70 % of hot and cold on the tick" 0.7 0.02 hot_share
}

kernel() {
	local in_kernel

	check "record profiles dd on the tick" record dd if=/dev/zero of=/dev/null bs=1M count=40000 status=none
	check "the samples of dd on the tick add up" conserved
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
