#!/bin/bash
# neighbour.sh - attacks by one user, and what they cost another one
#
# PROFIL_TEST_HOSTILE=long takes five runs of each attack instead of one, and PROFIL_TEST_ATTACKS
# names some of them.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

if test "$(id -u)" -ne 0; then
	skip "attacks beside a neighbour" "needs root: sudo make test"
	finish
fi
# In this run's own mount namespace all ids from 200000 on are one person's.
if test -n "${PROFIL_TEST_APART:-}"; then
	echo 60040:200000:65536 >"$dir/subuid"
	test -e /etc/subuid && mount --bind "$dir/subuid" /etc/subuid
fi
# shellcheck disable=SC2086 # a list
exec python3 tests/night/hostile/neighbour.py "$BUILD" "$dir" "${PROFIL_TEST_HOSTILE:-short}" ${PROFIL_TEST_ATTACKS:-}
