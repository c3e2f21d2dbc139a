#!/bin/bash
# python.sh - functions of Python on this architecture: shares, files, lines, whole stacks
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
source=tests/programs/shares/shares.py

needs /usr/bin/python3 "functions of Python are counted"
daemon_start
TRUTH=$dir/truth "$ctl" record -q -g -F 499 -o "$dir/kept" -- /usr/bin/python3 $source 12
"$ctl" report -f json -o "$dir/json" "$dir/kept"
"$ctl" report -a --by line "$dir/kept" >"$dir/lines"
if /usr/bin/python3 tests/lib/shares.py "$dir/json" "$dir/lines" "$dir/truth" python $source >"$dir/said" 2>&1; then
	ok "shares of functions of Python are those of the clock"
else
	fail "shares of functions of Python are those of the clock" "as follows"
fi
sed 's/^/  /' "$dir/said"
finish
