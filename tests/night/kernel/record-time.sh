#!/bin/bash
# record-time.sh - how many samples record counts at a period, and what it draws meanwhile
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
# shellcheck source=tests/lib/verdict.sh
. tests/lib/verdict.sh

ctl=$BUILD/profilctl
${CC:-gcc} -O2 -o "$dir/spin" tests/programs/spin.c -ldl -pthread || exit 1
daemon_start

# -c of cpu-clock is in ns of CPU time: 1777777 is no whole number of Hz.
accounted() { # FACTOR
	"$ctl" record -q -e cpu-clock -c 1777777 -f json -o "$dir/json" -- "$dir/spin" split "$1" &&
		jq -e '.samples.total as $n | select($n >= 200) | $n * .tick_ns / .cpu_ns' "$dir/json"
}
equivalent "the samples of -c of cpu-clock are the CPU time" 1 0.01 accounted

# record draws nothing on the terminal while the command uses it.
drawn() { # ARGS...
	script -qec "stty -onlcr; $(printf '%q ' "$ctl" record -o "$dir/profile" "$@") 2>/dev/tty" /dev/null </dev/null
}
if command -v script >/dev/null; then
	check "record draws nothing on the terminal while the command runs" test \
		"$(drawn -- sh -c 'sleep 2.5; echo end' | head -n 1 | cat -A)" = 'end$'
else
	lacks "record draws nothing on the terminal while the command runs" "script"
fi
daemon_stop
finish
