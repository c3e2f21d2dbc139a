#!/bin/bash
# replay-runner.sh - the test runner itself: what must not look green does not
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

# Runs a suite that is the script $2; its closing line must be $3 and its status $4.
closes() { # NAME SCRIPT LINE STATUS
	local said status line

	printf '#!/bin/bash\n%s\n' "$2" >"$dir/suite.sh"
	chmod +x "$dir/suite.sh"
	said=$(env -u PROFIL_TEST_ALLOW_SKIP tests/run.sh "$dir/suite.sh")
	status=$?
	line=${said##*$'\n'}
	if test "$line" = "$3" && test "$status" -eq "$4"; then
		ok "$1"
	else
		fail "$1" "status $status, not $4; closing line \"$line\", not \"$3\""
	fi
}

closes "totals of a suite are the runner's" \
	'echo ok a; echo skip b: so; echo 1 passed, 0 failed, 1 skipped' "1 passed, 0 failed, 1 skipped" 0
closes "a failure fails" \
	'echo FAIL a: so; echo 4 passed, 1 failed, 0 skipped; exit 1' "4 passed, 1 failed, 0 skipped" 1
closes "a suite that says nothing fails" ':' "0 passed, 1 failed, 0 skipped" 1
closes "a suite that breaks off fails" 'echo ok a; exit 0' "0 passed, 1 failed, 0 skipped" 1
closes "a suite that dies after its totals fails" \
	'echo 3 passed, 0 failed, 0 skipped; kill -SEGV $$' "3 passed, 1 failed, 0 skipped" 1
closes "nothing but skips is not green" \
	'echo 0 passed, 0 failed, 2 skipped' "0 passed, 0 failed, 2 skipped" 1

said=$(tests/run.sh "$dir/nosuch")
test $? -eq 1 && [[ $said == *"0 passed, 1 failed, 0 skipped" ]]
check "a suite that is not there fails" test $? -eq 0

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

guest_script() { # SCRIPT
	printf '#!/bin/bash\n%s\n' "$1" >"$dir/suite.sh"
	chmod +x "$dir/suite.sh"
}

# A Criterion binary that writes @TAP and ends with @STATUS.
guest_binary() { # TAP STATUS
	mkdir -p "$dir/tests"
	cat >"$dir/tests/unit-tests" <<-BINARY
		#!/bin/bash
		for a; do case \$a in --tap=*) printf '$1' >"\${a#*=}" ;; esac; done
		exit $2
	BINARY
	chmod +x "$dir/tests/unit-tests"
}

guest_script 'echo ok a; echo 1 passed, 0 failed, 0 skipped'
guest_says "in a guest, too, a suite passes" "$dir/suite.sh" "no FAIL"
guest_script 'echo ok a'
guest_says "one that breaks off fails" "$dir/suite.sh" \
	"FAIL suite.sh: ended with status 0 and without its totals"
guest_script 'echo ok a; echo 1 passed, 0 failed, 0 skipped; exit 3'
guest_says "one that dies after its totals fails" "$dir/suite.sh" \
	"FAIL suite.sh: ended with status 3, but no test had failed"
guest_binary 'ok - s::a  passed\nok - s::b  # SKIP test was skipped\n' 0
guest_says "a binary passes" unit "no FAIL"
guest_binary 'ok - s::a  passed\n' 3
guest_says "a binary that dies amid its tests fails" unit \
	"FAIL unit-tests: ended with status 3, but no test had failed"
guest_binary 'ok - s::a  # SKIP test was skipped\n' 0
guest_says "a binary none of whose tests is meant fails" unit \
	"FAIL unit-tests: ended with status 0 and told of no test of */*"
guest_says "a suite that no guest has fails" nosuch "FAIL nosuch: no such suite"
finish
