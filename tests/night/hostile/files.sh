#!/bin/bash
# files.sh - runs files.py: readers beside files that take much to read
#
# PROFIL_TEST_ATTACKS: the names of some of the files.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

if test "$(id -u)" -ne 0; then
	skip "readers beside hostile files" "needs root: sudo make test"
	finish
fi
# shellcheck disable=SC2086 # a list
exec python3 tests/night/hostile/files.py "$BUILD" "$dir" ${PROFIL_TEST_ATTACKS:-}
