#!/bin/bash
# ends.sh - runs ends.py, beside a user with subordinate ids in this run's own mount namespace
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

if test "$(id -u)" -ne 0; then
	skip "ends.py" "needs root: sudo make test"
	finish
fi
if test -n "${PROFIL_TEST_APART:-}"; then
	{ cat /etc/passwd && echo hostile:x:60040:60040::/:/bin/sh; } >"$dir/passwd"
	echo hostile:200000:65536 >"$dir/subuid"
	for file in passwd subuid subgid; do
		test -e /etc/$file && mount --bind "$dir/${file/subgid/subuid}" /etc/$file
	done
fi
exec python3 tests/night/hostile/ends.py "$BUILD" "$dir"
