#!/bin/bash
# debuginfod.sh - runs debuginfod.py
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

if test "$(id -u)" -ne 0; then
	skip "annotate beside hostile servers" "needs root: sudo make test"
	finish
fi
exec python3 tests/night/hostile/debuginfod.py "$BUILD" "$dir"
