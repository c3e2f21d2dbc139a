#!/bin/bash
# smoke.sh - the whole road on this kernel: load, count, report, and leave nothing behind
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"

# Of an emulated CPU not every tick comes at its time.
SHARE_POINTS=10
TICKS_PERCENT=20

# The ids of what is loaded in the kernel.
loaded() {
	local what

	for what in prog map link; do
		bpftool "$what" show 2>/dev/null | sed -n "s/^\([0-9]*\): .*/$what \1/p"
	done | sort
}

# What has been loaded since $before; the kernel frees it some grace periods after its last user.
left_behind() {
	local left=x end=$((SECONDS + 30))

	while test "$left" && test "$SECONDS" -lt "$end"; do
		left=$(comm -13 <(echo "$before") <(loaded))
	done
	echo "$left"
}

# The number before the word $2 in the line of $1 of what split has said.
said_of() { # PART UNIT
	awk -v part="$1" -v unit="$2" '$1 == part { for (i = 2; i < NF; i++) if ($(i + 1) == unit) print $i }' "$dir/split"
}

near() { # VALUE WANT WITHIN WHAT
	awk -v value="$1" -v want="$2" -v within="$3" 'BEGIN { exit !(value >= want - within && value <= want + within) }' ||
		{ echo "$4 is $1, not $2 +- $3"; return 1; }
}

counts_right() { # COMMAND...
	local all ticks first

	"$@" 5 >"$dir/split" || return 1
	cat "$dir/split"
	all=$(said_of all ticks)
	test "${all:-0}" -gt 0 || return 1
	ticks=$(($(said_of all ns) / 10000000))
	first=$((100 * $(said_of first ticks) / all))
	near "$all" "$ticks" $((ticks * TICKS_PERCENT / 100)) "the number of ticks" &&
		near "$first" 70 "$SHARE_POINTS" "the first loop's share"
}

# The hottest function is the one in which the program spends all its time.
records() {
	"$BUILD/profilctl" record -F 200 -f json -o "$dir/report" -- "$BUILD/tests/programs/split" 3 >"$dir/out" 2>&1 || {
		echo "status $?: $(cat "$dir/out")"
		return 1
	}
	jq -e '.samples.total > 100 and .samples.total == .samples.binned + .samples.unmatched + .samples.lost
		and (.functions[0].object | endswith("/split")) and .functions[0].percent > 80' "$dir/report" >"$dir/out" || {
		jq -c 'del(.places)' "$dir/report" | head -c 2000
		return 1
	}
}

before=$(loaded)
daemon_start
ok "profild loads its programs"
check "bpftool sees them" test "$(loaded)" != "$before"
check "a linked program's ticks are its time, where it was spent" \
	counts_right "$BUILD/tests/programs/split.linked"
check "a preloaded program's ticks are its time, where it was spent" \
	counts_right env LD_PRELOAD="$PWD/$BUILD/libprofil.so.1" "$BUILD/tests/programs/split"
check "profilctl record finds the hot function" records
daemon_stop
left=$(left_behind)
check "SIGTERM leaves nothing in the kernel" test -z "$left"
PROFIL_SOCKET=$dir/nobody
check "profilctl record starts a daemon of its own" records
left=$(left_behind)
check "and leaves nothing in the kernel" test -z "$left"
finish
