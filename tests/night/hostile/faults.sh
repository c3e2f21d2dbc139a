#!/bin/bash
# faults.sh - daemon and library survive the failure of every system call and every allocation
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

needs strace "profild and libprofil survive faults"
if ! strace -D -o /dev/null true 2>/dev/null; then
	skip "profild and libprofil survive faults" "strace cannot trace here"
	finish
fi
python3 tests/night/hostile/faults.py "$BUILD" "${PROFIL_TEST_OVER:-replay}" "$dir"
