#!/bin/bash
# http.sh - runs http_readers.py
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

if test "$(id -u)" -ne 0; then
	skip "http_readers.py" "needs root: sudo make test"
	finish
fi
exec python3 tests/night/hostile/http_readers.py "$BUILD" "$dir"
