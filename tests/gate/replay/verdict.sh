#!/bin/bash
# verdict.sh - the night's verdicts on numbers: how often they are red by chance, and what they notice
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

tells python3 tests/gate/replay/verdict.py

# ok when "equivalent" of BATCH prints one line, which begins with WORDS.
says() { # NAME WORDS BATCH
	local said

	said=$(
		. tests/lib/verdict.sh
		PROFIL_TEST_QUIET_S=0 equivalent f 0.5 0.1 "$3"
	)
	if [[ $said == "$2"* && $said != *$'\n'* ]]; then ok "$1"; else fail "$1" "$said"; fi
}

half() { echo 0.5; }
one() { echo 1; }
none() { return 1; }
word() { echo word; }

says "numbers as expected are ok at the first look" "ok f" half
says "numbers beyond need a quiet machine" "no verdict f: the machine did not become quiet" one
says "a batch that fails is no number" "no verdict f: the machine did not become quiet for the last look: too few samples" none
says "a batch that does not print a number fails once" "FAIL f: verdict.py: " word
finish
