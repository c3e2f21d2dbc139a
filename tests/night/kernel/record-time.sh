#!/bin/bash
# record-time.sh - how many samples record counts at a period, how many places it keeps, and what it draws meanwhile
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
daemon_start

# -c of cpu-clock is in ns of CPU time: 7777777 is no whole number of Hz.
# shellcheck disable=SC2016 # another shell's
"$ctl" record -q -e cpu-clock -c 7777777 -f json -o "$dir/json" -- sh -c 'i=0; while test $i -lt 1000000; do i=$((i + 1)); done'
check "the samples of -c of cpu-clock are the CPU time" jq -e '.samples.total * .tick_ns / .cpu_ns | . > 0.8 and . < 1.2' "$dir/json"

head -c 20000000 /dev/urandom | base64 -w 76 >"$dir/text"
places() {
	"$ctl" record -q -F 4999 -o "$dir/kept" "$@" -- gzip -1 -c "$dir/text" >/dev/null
	jq '.places | length' "$dir/kept"
}
exact=$(places)
for bytes in 16 64 4096; do
	blocks=$(places --resolution $bytes)
	check "places are as wide as parts of blocks of $bytes bytes" jq -e "[.places[][2]] | max | . > $bytes / 4 and . <= $bytes" "$dir/kept"
	# Each function in a block has a place, so that large blocks do not mean few places.
	test $bytes -gt 64 || check "there are fewer blocks of $bytes bytes than exact places" test "$blocks" -lt "$exact"
done

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
