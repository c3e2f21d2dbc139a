#!/bin/bash
# verdict.sh - verdicts on numbers that the scheduler chooses, by the deviation that they have themselves
#
# To be sourced after lib.sh, by tests of the night.

# Gives the verdict whether numbers are EXPECTED within EFFECT: "BATCH FACTOR ARG..." prints one, of FACTOR times as many
# samples as it needs (at least 200), or fails. See verdict.py.
equivalent() { # NAME EXPECTED EFFECT BATCH ARG...
	local factor looks=() said=''

	for factor in 1 4 16; do
		if test "$factor" -eq 16 && ! python3 tests/lib/verdict.py quiet "${PROFIL_TEST_QUIET_S:-600}"; then
			no_verdict "$1" "the machine did not become quiet for the last look: ${said#more }"
			return
		fi
		looks+=("$dir/look.$factor")
		for _ in {1..20}; do
			"$4" "$factor" "${@:5}" || echo none
		done >"$dir/look.$factor"
		said=$(python3 tests/lib/verdict.py equivalent "$2" "$3" "${looks[@]}" 2>&1)
		case $said in
		more\ *) continue ;;
		ok\ *) ok "$1" ;;
		FAIL\ *) fail "$1" "${said#FAIL }" ;;
		no\ verdict\ *) no_verdict "$1" "${said#no verdict }" ;;
		*) fail "$1" "verdict.py: $said" ;;
		esac
		return
	done
}
