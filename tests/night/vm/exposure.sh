#!/bin/bash
# exposure.sh - how much of the machine a unit may touch, as systemd rates it
#
# To be sourced, after tests/lib/lib.sh.

EXPOSURE_MAX=1.5

check_exposure() { # SYSTEMD-ANALYZE_ARGS...
	local score

	score=$(systemd-analyze security --no-pager "$@" | sed -n 's/.*exposure level.*: \([0-9.]*\).*/\1/p')
	check "systemd-analyze security: $(basename "${!#}") $score, at most $EXPOSURE_MAX" \
		awk -v score="$score" -v max="$EXPOSURE_MAX" 'BEGIN { exit !(score > 0 && score <= max) }'
}
