#!/bin/bash
# replay-runner.sh - the test runner itself: what must not look green does not
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

# Makes $dir/suite.sh a suite.
script() { # SCRIPT
	printf '#!/bin/bash\n%s\n' "$1" >"$dir/suite.sh"
	chmod +x "$dir/suite.sh"
}

# Makes $dir/tests/unit-tests a Criterion binary that writes @TAP and ends with @STATUS.
binary() { # TAP STATUS
	mkdir -p "$dir/tests"
	cat >"$dir/tests/unit-tests" <<-BINARY
		#!/bin/bash
		for a; do case \$a in --tap=*) printf '$1' >"\${a#*=}" ;; esac; done
		exit $2
	BINARY
	chmod +x "$dir/tests/unit-tests"
}

# Runs a suite that is the script $2; its closing line must be $3 and its status $4.
closes() { # NAME SCRIPT LINE STATUS
	local status line

	script "$2"
	run=$(env -u PROFIL_TEST_ALLOW_SKIP tests/run.sh "$dir/suite.sh")
	status=$?
	line=${run##*$'\n'}
	if test "$line" = "$3" && test "$status" -eq "$4"; then
		ok "$1"
	else
		fail "$1" "status $status, not $4; closing line \"$line\", not \"$3\""
	fi
}

# What run.sh printed has these LINES at its end.
run_ends_with() { # LINES
	test "${run: -${#1}}" = "$1"
}

closes "totals of a suite are the runner's" \
	'echo ok a; echo skip b: so; echo 1 passed, 0 failed, 1 skipped' "1 passed, 0 failed, 1 skipped" 0
closes "a failure fails" \
	'echo FAIL a: so; echo 4 passed, 1 failed, 0 skipped; exit 1' "4 passed, 1 failed, 0 skipped" 1
check "what failed is told once more at the end" run_ends_with "== what failed
$dir/suite.sh: FAIL a: so
4 passed, 1 failed, 0 skipped"
closes "a guest's failure fails" \
	'echo "trixie   6.12.1   FAIL s: a: so"; echo "s: a FAIL"; echo 4 passed, 1 failed, 0 skipped; exit 1' \
	"4 passed, 1 failed, 0 skipped" 1
check "and is told once more" run_ends_with "== what failed
$dir/suite.sh: trixie   6.12.1   FAIL s: a: so
4 passed, 1 failed, 0 skipped"
closes "a suite that says nothing fails" ':' "0 passed, 1 failed, 0 skipped" 1
closes "a suite that breaks off fails" 'echo ok a; exit 0' "0 passed, 1 failed, 0 skipped" 1
closes "a suite that dies after its totals fails" \
	'echo 3 passed, 0 failed, 0 skipped; kill -SEGV $$' "3 passed, 1 failed, 0 skipped" 1
check "and how it ended is told" run_ends_with "== what failed
$dir/suite.sh: FAIL $dir/suite.sh: ended with status 139, but no test had failed
3 passed, 1 failed, 0 skipped"
closes "nothing but skips is not green" \
	'echo 0 passed, 0 failed, 2 skipped' "0 passed, 0 failed, 2 skipped" 1

said=$(tests/run.sh "$dir/nosuch")
test $? -eq 1 && [[ $said == *"0 passed, 1 failed, 0 skipped" ]]
check "a suite that is not there fails" test $? -eq 0

binary 'not ok - s::a  (0.00s)\n  failures:\n  - a.c:2: |+\n      Assertion failed: 1 is 2\n  ...\n' 1
run=$(BUILD=$dir tests/run.sh "$dir/tests/unit-tests")
check "a binary's is told with its place" run_ends_with "== what failed
$dir/tests/unit-tests: FAIL s::a: (0.00s) a.c:2: Assertion failed: 1 is 2
0 passed, 1 failed, 0 skipped"

# What guest.sh says of suite $2 must have the line $3, or not, where that is "no FAIL".
guest_says() { # NAME SUITE LINE
	local said line

	said=$(BUILD=$dir tests/vm/guest.sh "$2" 2>&1)
	line=$(grep '^FAIL ' <<<"$said")
	if test "${line:-no FAIL}" = "$3"; then
		ok "$1"
	else
		fail "$1" "it says '${line:-no FAIL}', not '$3'"
	fi
}

script 'echo ok a; echo 1 passed, 0 failed, 0 skipped'
guest_says "in a guest, too, a suite passes" "$dir/suite.sh" "no FAIL"
script 'echo ok a'
guest_says "one that breaks off fails" "$dir/suite.sh" \
	"FAIL suite.sh: ended with status 0 and without its totals"
script 'echo ok a; echo 1 passed, 0 failed, 0 skipped; exit 3'
guest_says "one that dies after its totals fails" "$dir/suite.sh" \
	"FAIL suite.sh: ended with status 3, but no test had failed"
binary 'ok - s::a  passed\nok - s::b  # SKIP test was skipped\n' 0
guest_says "a binary passes" unit "no FAIL"
binary 'ok - s::a  passed\n' 3
guest_says "a binary that dies amid its tests fails" unit \
	"FAIL unit-tests: ended with status 3, but no test had failed"
binary 'ok - s::a  # SKIP test was skipped\n' 0
guest_says "a binary none of whose tests is meant fails" unit \
	"FAIL unit-tests: ended with status 0 and told of no test of */*"
guest_says "a suite that no guest has fails" nosuch "FAIL nosuch: no such suite"
finish
