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
finish
