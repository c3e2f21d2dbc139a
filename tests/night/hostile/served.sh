#!/bin/bash
# served.sh - readers beside a file system whose server falls silent
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

if test "$(id -u)" -ne 0; then
	skip "readers beside a mute file system" "needs root: sudo make test"
	finish
fi
exec python3 tests/night/hostile/served.py "$BUILD" "$dir"
