#!/bin/bash
# event_counts.sh - recordings of tests/programs/deeds.c, which causes a known number of events
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck disable=SC2154 # dir is lib.sh's

needs jq "events are counted"
ctl=$(realpath "$BUILD/profilctl")
deeds=$dir/deeds
${CC:-gcc} -O2 -g -o "$deeds" tests/programs/deeds.c -pthread || exit 1

# Records the program's events. Prints how many it has caused by its own account.
# 77: it cannot cause them, and its output says why.
caused() { # EVENT WHAT ARG...
	"$ctl" record -q -e "$1" -o "$dir/kept" -- "$deeds" "${@:2}" 2>"$dir/stderr"
}

# LEAST <= NUMBER <= MOST
within() { # LEAST NUMBER MOST
	if test "$1" -gt "$2" || test "$2" -gt "$3"; then
		echo "$2 samples, not $1 to $3: $(cat "$dir/stderr")"
		return 1
	fi
}

# The samples of the profile, or of a function of the program, with those in the kernel that it entered.
samples() { # [FUNCTION]
	"$ctl" report --fold-kernel -f json "$dir/kept" | jq --arg name "${1:-}" \
		'if $name == "" then .samples.total else [.functions[] | select(.name == $name).samples] | add // 0 end'
}

has_event() { # EVENT
	"$ctl" list --events | grep -qx "$1"
}
