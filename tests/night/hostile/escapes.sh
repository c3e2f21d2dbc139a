#!/bin/bash
# escapes.sh - runs escapes.py: attempts of a user to gain rights or reach other users
#
# PROFIL_TEST_ATTACKS: the names of the attempts to run, or "all", with those that are known to fail.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

if test "$(id -u)" -ne 0; then
	skip "no escape succeeds" "needs root: sudo make test"
	finish
fi
# shellcheck disable=SC2086 # a list
exec python3 tests/night/hostile/escapes.py "$BUILD" "$dir" ${PROFIL_TEST_ATTACKS:-}
