#!/bin/bash
# faults.sh - daemon and library survive the failure of every system call and every allocation
# shellcheck source=tests/system/lib/lib.sh
. "$(dirname "$0")/../system/lib/lib.sh"

if ! strace -D -o /dev/null true 2>/dev/null; then
	skip "profild and libprofil survive faults" "strace cannot trace here: sudo make deps, and a kernel that lets it"
	finish
fi
python3 tests/hostile/faults.py "$BUILD" "${PROFIL_TEST_OVER:-replay}" "$dir"
