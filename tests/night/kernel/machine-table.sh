#!/bin/bash
# machine-table.sh - the machine's table is replaced before made-up names fill it, and its readers follow
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")
${CC:-gcc} -O2 -g -o "$dir/spin" tests/programs/spin.c -ldl -pthread || exit 1
${CC:-gcc} -O2 -o "$dir/names" tests/programs/names.c || exit 1
least=3072 # groups: three quarters of the table's

status_of() { # FILTER
	"$ctl" machine status --json | jq "$1"
}

# Waits until the daemon has replaced the table.
await_anew() {
	await "$daemon" grep -q 'the machine.s profile begins anew: its table filled up' "$dir/log" || { status_of .; false; }
}

# A new table has the commands of this machine only.
is_new() { # STARTED_NS
	if test "$(status_of .started_ns)" -le "$1" || test "$(status_of .groups)" -gt $((least / 2)); then
		status_of .
		return 1
	fi
}

has_lines() { # FILE N
	test "$(wc -l <"$1")" -ge "$2"
}

# The first of top's tables of an interval that began after the replacement shows the busy process, as those before.
# The last one is of no use: it ends with the signal, however soon that is.
top_follows() {
	local first=$(($(wc -l <"$dir/top") + 2))

	await "$top" has_lines "$dir/top" "$first" || return
	sed -n "${first}p" "$dir/top" >"$dir/table"
	jq -e '[.functions[] | select(.name == "hot").samples] | add // 0 > 0' "$dir/table" ||
		{ jq -c 'del(.places, .objects)' "$dir/table"; return 1; }
}

daemon_start --rate 1000
"$dir/spin" split 1000 &
busy=$!
check "machine on turns the machine's profile on" "$ctl" machine on
started=$(status_of .started_ns)
"$ctl" machine top --json -i 1 -n 1000 >"$dir/top" 2>"$dir/top.stderr" &
top=$!
"$ctl" machine report -d 1000 >"$dir/report" 2>"$dir/stderr" &
report=$!
check "programs with more names than the table has room for run" "$dir/names" 4300 3
check "the daemon replaces the table of the machine's profile" await_anew
check "the new table is empty at first" is_new "$started"
check "the period is the same" test "$(status_of .tick_ns)" -eq 1000000
kill -INT "$report"
wait "$report"
check "machine report says that the profile began anew meanwhile" grep -q 'began anew meanwhile' "$dir/stderr"
check "machine report -d 1 reports the new table" "$ctl" machine report -d 1 -f json -o "$dir/json"
check "it has the busy process" jq -e '[.functions[] | select(.name == "hot").samples] | add // 0 > 0' "$dir/json"
check "machine top continues with the new table" top_follows
kill -INT "$top"
wait "$top"
"$ctl" machine top -b -i 1 -n 100 >"$dir/next" 2>"$dir/top.stderr" &
top=$!
await "$top" test -s "$dir/next"
check "machine off turns the machine's profile off" "$ctl" machine off
wait "$top"
check "machine top ends when the machine's profile is turned off" grep -q 'the machine.s profile was turned off' "$dir/top.stderr"
kill "$busy"
wait "$busy" 2>/dev/null
daemon_stop
finish
