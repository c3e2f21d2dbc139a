#!/bin/bash
# attack.sh - the flood of hostile messages against a daemon with address and undefined sanitizers
#
# PROFIL_TEST_MESSAGES says how many.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"

build=build/san-address-undefined

if ! make --no-print-directory -j"$(nproc)" SAN=address,undefined all tests >"$dir/make.log" 2>&1; then
	fail "build with SAN=address,undefined" "$(tail -n 20 "$dir/make.log")"
	finish
fi
said=$(BUILD=$build "$build/tests/system-tests" --filter 'hostile/*' -j1 2>&1)
status=$?
flood=$(grep 'hostile messages' <<<"$said")
if test "$status" -eq 0 && test "$flood"; then
	ok "with sanitizers: $flood"
else
	fail "with sanitizers" "status $status, $(grep -c . <<<"$flood") floods: $said"
fi
finish
