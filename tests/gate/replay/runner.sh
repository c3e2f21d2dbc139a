#!/bin/bash
# runner.sh - tests/run.sh itself: nothing but passed tests counts as success
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

# Makes SCRIPT the suite $dir/suite.sh.
script() { # SCRIPT
	printf '#!/bin/bash\n%s\n' "$1" >"$dir/suite.sh"
	chmod +x "$dir/suite.sh"
}

# Makes $dir/tests/unit-tests a Criterion binary that writes TAP and returns STATUS.
binary() { # TAP STATUS
	mkdir -p "$dir/tests"
	cat >"$dir/tests/unit-tests" <<-BINARY
		#!/bin/bash
		for a; do case \$a in --tap=*) printf '$1' >"\${a#*=}" ;; esac; done
		exit $2
	BINARY
	chmod +x "$dir/tests/unit-tests"
}

# Runs SCRIPT as a suite: the runner's last line must be LINE, its status STATUS.
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

# Says whether the output of run.sh ends with LINES.
run_ends_with() { # LINES
	test "${run: -${#1}}" = "$1"
}

closes "the runner's totals are the suite's" \
	'echo ok a; echo skip b: so; echo 1 passed, 0 failed, 1 skipped' "1 passed, 0 failed, 1 skipped" 0
closes "a failed test fails the run" \
	'echo FAIL a: so; echo 4 passed, 1 failed, 0 skipped; exit 1' "4 passed, 1 failed, 0 skipped" 1
check "the run ends with the failures" run_ends_with "== what failed
$dir/suite.sh: FAIL a: so
4 passed, 1 failed, 0 skipped"
closes "a guest's failed test fails the run" \
	'echo "trixie   6.12.1   FAIL s: a: so"; echo "s: a FAIL"; echo 4 passed, 1 failed, 0 skipped; exit 1' \
	"4 passed, 1 failed, 0 skipped" 1
check "the run ends with the guest's failures" run_ends_with "== what failed
$dir/suite.sh: trixie   6.12.1   FAIL s: a: so
4 passed, 1 failed, 0 skipped"
closes "a suite without output fails" ':' "0 passed, 1 failed, 0 skipped" 1
closes "a suite without totals fails" 'echo ok a; exit 0' "0 passed, 1 failed, 0 skipped" 1
closes "a suite that dies after its totals fails" \
	'echo 3 passed, 0 failed, 0 skipped; kill -SEGV $$' "3 passed, 1 failed, 0 skipped" 1
check "the run ends with the status of a suite that died" run_ends_with "== what failed
$dir/suite.sh: FAIL $dir/suite.sh: ended with status 139, but no test had failed
3 passed, 1 failed, 0 skipped"
closes "a run of skipped tests alone fails" \
	'echo 0 passed, 0 failed, 2 skipped' "0 passed, 0 failed, 2 skipped" 1
closes "a run without a tool has no verdict" \
	'echo ok a; echo skip b: no jq: sudo make deps; echo 1 passed, 0 failed, 1 skipped' "1 passed, 0 failed, 1 skipped" 2
check "the run ends with what a missing tool left untested" run_ends_with "== what is missing
$dir/suite.sh: skip b: no jq: sudo make deps
1 passed, 0 failed, 1 skipped"

export PROFIL_TEST_SILENCE_S=1
closes "a suite that hangs leaves the run without a verdict" \
	"echo ok a; setsid tail -f /dev/null & echo \$! >'$dir/apart'; exec tail -f /dev/null" "0 passed, 0 failed, 0 skipped" 2
check "the run names the suite that hangs" grep -q "^hangs for [0-9]* s: $dir/suite.sh\$" <<<"$run"
ended() { # PID
	! alive "$1"
}
check "what a suite that hangs has started ends with the run" await "$$" ended "$(cat "$dir/apart")"
unset PROFIL_TEST_SILENCE_S
said=$(tests/run.sh "$dir/nosuch")
test $? -eq 1 && [[ $said == *"0 passed, 1 failed, 0 skipped" ]]
check "a suite that does not exist fails" test $? -eq 0

binary 'not ok - s::a  (0.00s)\n  failures:\n  - a.c:2: |+\n      Assertion failed: 1 is 2\n  ...\n' 1
run=$(BUILD=$dir tests/run.sh "$dir/tests/unit-tests")
check "a failure of a Criterion binary is shown with file and line" run_ends_with "== what failed
$dir/tests/unit-tests: FAIL s::a: (0.00s) a.c:2: Assertion failed: 1 is 2
0 passed, 1 failed, 0 skipped"

binary 'ok - s::a  passed\nok - s::b  # SKIP no node: sudo make deps\n' 0
BUILD=$dir tests/run.sh "$dir/tests/unit-tests" >"$dir/said"
check "a run without a Criterion test's tool has no verdict" test $? -eq 2

# A gate of one suite that passes, in a tree of its own. Without what the kernel's suites need it has no verdict.
tree=$dir/tree
mkdir -p "$tree"/tests/{lib,gate/{both,replay,kernel}}
cp tests/run.sh "$tree/tests"
cp tests/lib/nightly.py "$tree/tests/lib"
touch "$tree/tests/NIGHTLY"
script 'echo ok a; echo 1 passed, 0 failed, 0 skipped'
for suite in style both/a replay/a kernel/a; do
	cp "$dir/suite.sh" "$tree/tests/gate/$suite.sh"
done
binary 'ok - s::a  passed\n' 0
mkdir "$tree/build"
cp -r "$dir/tests" "$tree/build"
chmod -R a+rX "$dir"

gate_lacks() { # REASON COMMAND...
	local said status

	said=$(env -u BUILD -u PROFIL_TEST_DIR TMPDIR=/tmp "${@:2}" "$tree/tests/run.sh" gate)
	status=$?
	echo "status $status: $said"
	test "$status" -eq 2 && grep -q "^skip the kernel suites: $1" <<<"$said"
}

if test "$(id -u)" -ne 0; then
	check "a gate of an ordinary user has no verdict" gate_lacks "needs root" env
else
	check "a gate of an ordinary user has no verdict" gate_lacks "needs root" setpriv --reuid=61001 --regid=61001 --clear-groups
	check "a gate without BTF has no verdict" gate_lacks "this kernel has no /sys/kernel/btf/vmlinux" \
		unshare --mount sh -c 'mount -t tmpfs none /sys/kernel/btf && exec "$@"' sh
	check "a gate that may not load BPF has no verdict" gate_lacks "no bpffs can be mounted" setpriv --bounding-set=-sys_admin
	check "a gate that lacks nothing passes" env -u BUILD -u PROFIL_TEST_DIR "$tree/tests/run.sh" gate
fi

# ok when the FAIL line that guest.sh prints for SUITE is LINE; "no FAIL": when it prints none.
guest_says() { # NAME SUITE LINE
	local said line

	said=$(BUILD=$dir tests/night/vm/guest.sh "$2" 2>&1)
	line=$(grep '^FAIL ' <<<"$said")
	if test "${line:-no FAIL}" = "$3"; then
		ok "$1"
	else
		fail "$1" "it says '${line:-no FAIL}', not '$3'"
	fi
}

script 'echo ok a; echo 1 passed, 0 failed, 0 skipped'
guest_says "a suite passes in a guest" "$dir/suite.sh" "no FAIL"
script 'echo ok a'
guest_says "a suite without totals fails in a guest" "$dir/suite.sh" \
	"FAIL suite.sh: ended with status 0 and without its totals"
script 'echo ok a; echo 1 passed, 0 failed, 0 skipped; exit 3'
guest_says "a suite that dies after its totals fails in a guest" "$dir/suite.sh" \
	"FAIL suite.sh: ended with status 3, but no test had failed"
binary 'ok - s::a  passed\nok - s::b  # SKIP test was skipped\n' 0
guest_says "a Criterion binary passes in a guest" unit "no FAIL"
binary 'ok - s::a  passed\n' 3
guest_says "a binary that dies during its tests fails in a guest" unit \
	"FAIL unit-tests: ended with status 3, but no test had failed"
binary 'ok - s::a  # SKIP test was skipped\n' 0
guest_says "a binary whose tests are all filtered out fails in a guest" unit \
	"FAIL unit-tests: ended with status 0 and told of no test of */*"
guest_says "an unknown suite fails in a guest" nosuch "FAIL nosuch: no such suite"
finish
