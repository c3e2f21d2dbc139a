#!/bin/bash
# counts.sh - what the tests inside guests look at: a program's counts, and what the kernel holds
#
# To be sourced, after tests/lib/lib.sh.

# Of an emulated CPU not every tick comes at its time.
SHARE_POINTS=10
TICKS_PERCENT=20

# What is loaded in the kernel, but for what systemd keeps its services in with.
loaded() {
	local what

	for what in prog map link; do
		bpftool "$what" show 2>/dev/null | sed -n "/cgroup/d; s/^[0-9]*: /$what &/p"
	done | sort
}

# What is loaded that was not when loaded said @BEFORE. The kernel frees it some grace periods after
# its last user.
left_behind() { # BEFORE
	local left=x end=$((SECONDS + 120))

	while test "$left" && test "$SECONDS" -lt "$end"; do
		left=$(comm -13 <(echo "$1") <(loaded))
	done
	echo "$left"
}

# Says @WORDS, and whether there are none.
says_nothing() { # WORDS
	echo "$1"
	test -z "$1"
}

# The number before the word @UNIT in the line of @PART that split has said.
said_of() { # PART UNIT
	awk -v part="$1" -v unit="$2" \
		'$1 == part { for (i = 2; i < NF; i++) if ($(i + 1) == unit) print $i }' "${dir:?}/split"
}

near() { # VALUE WANT WITHIN WHAT
	if test "$1" -lt $(($2 - $3)) || test "$1" -gt $(($2 + $3)); then
		echo "$4 is $1, not $2 +- $3"
		return 1
	fi
}

# Says whether split, which has written $dir/split, was counted where it was, as long as it was.
counts_right() {
	local all ticks

	cat "${dir:?}/split"
	all=$(said_of all ticks)
	test "${all:-0}" -gt 0 || return 1
	ticks=$(($(said_of all ns) / 10000000))
	near "$all" "$ticks" $((ticks * TICKS_PERCENT / 100)) "the number of ticks" &&
		near $((100 * $(said_of first ticks) / all)) 70 "$SHARE_POINTS" "the first loop's share"
}

# The same of a run of split for 5 s.
runs_right() { # COMMAND...
	"$@" 5 >"$dir/split" 2>&1 || { cat "$dir/split"; return 1; }
	counts_right
}
