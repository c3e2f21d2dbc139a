#!/bin/bash
# store.sh - runs store.py
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

if test "$(id -u)" -ne 0; then
	skip "store.py" "needs root: sudo make test"
	finish
fi
exec python3 tests/night/hostile/store.py "$BUILD" "$dir"
