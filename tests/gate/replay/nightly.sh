#!/bin/bash
# nightly.sh - tests/NIGHTLY: what the nights found and nothing has closed
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

night='2026-01-02T03:04Z 2026-01-02T05:06Z: Linux 6.18.5, 2 CPUs, 0.1 % steal: 9 passed, 1 failed, 0 skipped'

# Makes $dir/record of the lines.
record() { # LINE...
	printf '%s\n' '# a comment' '' "$@" >"$dir/record"
}

# ok when what is open on TODAY is WORDS.
open_is() { # NAME WORDS [TODAY]
	prints "$1" "$2" python3 tests/lib/nightly.py open "$dir/record" "${3:-2026-02-01}"
}

record "night abcdef0 $night"
open_is "a night without a red leaves nothing open" ""
record "night abcdef0 $night" "red kernel:a/b.sh: shares of f: 0.68 [0.67, 0.69]"
open_is "a red is open" "kernel:a/b.sh: shares of f: 0.68 [0.67, 0.69] (at abcdef0, 2026-01-02T03:04Z)"
record "night abcdef0 $night" "red kernel:a/b.sh: shares of f: low" "night abcdef1 $night"
open_is "a night that passes does not close a red" "kernel:a/b.sh: shares of f: low (at abcdef0, 2026-01-02T03:04Z)"
record "night abcdef0 $night" "red a.sh: f: low" "red a.sh: g: high" "fixed a.sh: f by abcdef12"
open_is "a line fixed closes the red that it names" "a.sh: g: high (at abcdef0, 2026-01-02T03:04Z)"
record "fixed a.sh: f by abcdef12" "night abcdef0 $night" "red a.sh: f: low"
open_is "a line fixed closes no later red" "a.sh: f: low (at abcdef0, 2026-01-02T03:04Z)"
record "night abcdef0 $night" "red a.sh: f: low" "accepted a.sh: f: the clock of this host: no other, UNTIL 2026-02-01"
open_is "a line accepted closes a red" ""
open_is "a line accepted closes a red to its day" \
	"a.sh: f: low (at abcdef0, 2026-01-02T03:04Z); it was accepted until 2026-02-01" 2026-02-02
record "part abcdef0 $night" "covers a.sh b.sh" "red a.sh: f: low"
open_is "a red of a part of a night is open" "a.sh: f: low (at abcdef0, 2026-01-02T03:04Z)"

no_verdict='no verdict a.sh: f: too few'
record "night abcdef0 $night" "$no_verdict" "night abcdef1 $night" "$no_verdict"
open_is "two nights without a verdict leave nothing open" ""
record "night abcdef0 $night" "$no_verdict" "night abcdef1 $night" "$no_verdict" "night abcdef2 $night" "$no_verdict"
open_is "three nights without a verdict count as a red" "a.sh: f: no verdict in 3 nights in a row, the last: too few"
record "night abcdef0 $night" "$no_verdict" "night abcdef1 $night" "night abcdef2 $night" "$no_verdict" "night abcdef3 $night" "$no_verdict"
open_is "a night with a verdict ends the nights without one" ""
record "night abcdef0 $night" "$no_verdict" "night abcdef1 $night" "$no_verdict" "part abcdef1 $night" "covers b.sh" \
	"night abcdef2 $night" "$no_verdict"
open_is "a part of other suites leaves the nights without a verdict" "a.sh: f: no verdict in 3 nights in a row, the last: too few"
record "night abcdef0 $night" "$no_verdict" "night abcdef1 $night" "$no_verdict" "part abcdef1 $night" "covers a.sh b.sh" \
	"night abcdef2 $night" "$no_verdict"
open_is "a part with a verdict ends the nights without one" ""
record "night abcdef0 $night" "$no_verdict" "part abcdef1 $night" "covers a.sh" "$no_verdict" "part abcdef1 $night" "covers a.sh" "$no_verdict"
open_is "parts are not counted as nights" ""
record "night abcdef0 $night" "$no_verdict" "$no_verdict" "$no_verdict"
open_is "a night with three lines of one test without a verdict is one night" ""
record "red a.sh: f: of no night" "fixed a.sh f" "night abcdef0: so"
open_is "a line that cannot be read is named" "tests/NIGHTLY: no such line: red a.sh: f: of no night
tests/NIGHTLY: no such line: fixed a.sh f
tests/NIGHTLY: no such line: night abcdef0: so"

check "a record that is missing is not one without a red" sh -c "! python3 tests/lib/nightly.py open '$dir/nosuch' 2026-02-01"

age_is() { # NAME WORDS
	prints "$1" "$2" python3 tests/lib/nightly.py age "$dir/record" 2026-01-12
}

record "part abcdef0 $night"
age_is "a part is no whole night" "nightly: no whole night is recorded: sudo make nightly"
record "night abcdef0 $night" "part abcdef1 $night"
age_is "the last night's age and totals are shown" \
	"nightly: the last whole night was an unknown number of commits and 10 days ago (abcdef0, 2026-01-02): 9 passed, 1 failed, 0 skipped"

# Runs SCRIPT as a part of a night, whose entry is in $dir/record.
part() { # SCRIPT
	printf '#!/bin/bash\n%s\n' "$1" >"$dir/suite.sh"
	chmod +x "$dir/suite.sh"
	rm -f "$dir/record"
	BUILD=$dir PROFIL_TEST_NIGHTLY=$dir/record tests/run.sh night "$dir/suite.sh" >"$dir/said"
	status=$?
}

# ok when the last run ended with STATUS and its entry's lines but the first are LINES.
enters() { # NAME STATUS LINES
	local lines

	lines=$(sed 1,2d "$dir/record")
	if test "$status" -eq "$2" && test "$lines" = "$3"; then ok "$1"; else fail "$1" "status $status: $lines"; fi
}

part 'echo ok a; echo 1 passed, 0 failed, 0 skipped'
enters "a part of a night covers its suites" 0 "covers $dir/suite.sh"
check "an entry has commit, times, machine and totals" grep -Eqx \
	'part [0-9a-f]+[+]? [0-9T:-]+Z [0-9T:-]+Z: Linux [^ ]+, [0-9]+ CPUs, [0-9.]+ % steal: 1 passed, 0 failed, 0 skipped' "$dir/record"
check "the log is kept" test -s "$dir"/nightly/*.log
: >"$dir/none"
rm "$dir/record"
check "a part that was ended before its first suite had is not entered" sh -c "
	python3 tests/lib/nightly.py append '$dir/record' part 'abcdef0 $night' '$dir/none' '$dir/none' '$dir/none'
	test ! -e '$dir/record'"
part 'echo FAIL f: low: so; echo 1 passed, 1 failed, 0 skipped; exit 1'
enters "a failed test is a red" 1 "covers $dir/suite.sh
red $dir/suite.sh: f: low: so"
part 'echo "no verdict f: too few"; echo 1 passed, 0 failed, 0 skipped, 1 without a verdict'
enters "a test without a verdict is entered" 2 "covers $dir/suite.sh
no verdict $dir/suite.sh: f: too few"
check "the totals count a test without a verdict" grep -qx '1 passed, 0 failed, 0 skipped, 1 without a verdict' "$dir/said"
part 'echo skip g: no jq: sudo make deps; echo 1 passed, 0 failed, 1 skipped'
enters "a missing tool leaves a test without a verdict" 2 "covers $dir/suite.sh
no verdict $dir/suite.sh: g: no jq: sudo make deps"
part 'echo "trixie   6.12.1   FAIL s: a: so"; echo "trixie   6.12.1   FAIL s: b: so: low"; echo "4 passed, 2 failed, 0 skipped"; exit 1'
enters "a guest's red has the names of guest, suite and test" 1 "covers $dir/suite.sh
red $dir/suite.sh: trixie s / a: so
red $dir/suite.sh: trixie s / b: so: low"
echo "fixed $dir/suite.sh: trixie s / a by abcdef12" >>"$dir/record"
read -r _ commit from _ < <(sed -n 2p "$dir/record")
open_is "a line fixed closes one red of a guest's suite" "$dir/suite.sh: trixie s / b: so: low (at $commit, $from)"

# An acceptance is over when a commit is younger than its day: the verdict depends on the tree alone.
today=$(git -c safe.directory="$PWD" log -1 --format=%cd --date=format:%F 2>/dev/null)
python3 tests/lib/nightly.py open tests/NIGHTLY "${today:-0000-00-00}" >"$dir/open" 2>&1
while read -r red; do
	fail "nothing of tests/NIGHTLY is open" "$red"
done <"$dir/open"
test -s "$dir/open" || ok "nothing of tests/NIGHTLY is open"
finish
