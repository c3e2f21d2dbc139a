#!/bin/bash
# attack.sh - a flood of hostile messages against a daemon with address and undefined sanitizers
#
# PROFIL_TEST_MESSAGES: how many. PROFIL_TEST_HOSTILE=long runs neighbour.py and escapes.py as well.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

build=build/san-address-undefined

if ! make --no-print-directory -j"$(nproc)" SAN=address,undefined all tests >"$dir/make.log" 2>&1; then
	fail "the build with SAN=address,undefined succeeds" "$(tail -n 20 "$dir/make.log")"
	finish
fi
said=$(BUILD=$build "$build/tests/night-tests" --filter 'hostile/*' -j1 2>&1)
status=$?
flood=$(grep 'hostile messages' <<<"$said")
if test "$status" -eq 0 && test "$flood"; then
	ok "a daemon with sanitizers withstands $flood"
else
	fail "a daemon with sanitizers withstands hostile messages" "status $status, $(grep -c . <<<"$flood") floods: $said"
fi
if test "${PROFIL_TEST_HOSTILE:-short}" = long; then
	check "a daemon with sanitizers serves a neighbour during attacks" \
		python3 tests/night/hostile/neighbour.py "$build" "$dir" short
	check "no escape succeeds with sanitizers" python3 tests/night/hostile/escapes.py "$build" "$dir"
fi
finish
