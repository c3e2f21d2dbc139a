#!/bin/bash
# guest.sh - what runs inside a guest, as root, on the host's files: a line for each test
#
# usage: tests/vm/guest.sh SUITE...
#
# A SUITE is smoke, pids, unit, scripts, system or one of the system tests' own, as kernel_vectors.
# The first line is "kernel VERSION". For each suite comes a line "suite NAME", then one for each
# test: "ok NAME", "FAIL NAME: why" or "skip NAME: why", with what else there is to say of it
# indented. The last line is "guest done".
set -u
exec 2>&1
cd "$(dirname "$0")/../.." || exit 1

export BUILD=${BUILD:-build} PROFIL_TEST_OVER=kernel
export PROFIL_PRELOAD=$PWD/$BUILD/libprofil.so.1 TMPDIR=/tmp
export PROFIL_TEST_UPHEAVAL='cpus clock' # nobody else is here

# The lines of a TAP file, with the words of a failure behind it. Criterion tells of a test that its
# filter left out as of a skipped one.
criterion_lines() { # TAP
	sed -n -e 's/^ok - \([^ ]*\) .*# SKIP \(.*\)/skip \1: \2/p' -e t \
		-e 's/^ok - \([^ ]*\).*/ok \1/p' -e 's/^not ok - \([^ ]*\).*/FAIL \1/p' \
		-e 's/^  /  /p' "$1" | grep -v '^skip .*: test was skipped$'
}

run_criterion() { # BINARY FILTER
	local tap=/tmp/tap status

	rm -f "$tap"
	"$1" -j1 --timeout 300 --tap="$tap" --filter "$2" >/tmp/words 2>&1
	status=$?
	if test -s "$tap"; then
		criterion_lines "$tap"
	else
		echo "FAIL ${1##*/}: ended with status $status and told of no test"
		sed 's/^/  /' /tmp/words
	fi
}

# Those that look at what the kernel does. What is made of a profile is the same everywhere; perf and
# diff, with their thousands of samples, take too long in emulation, and so does what top would cost.
run_scripts() {
	local script

	for script in tests/system/conformance.sh tests/system/kernel-*.sh; do
		case ${script##*/} in kernel-perf.sh | kernel-diff.sh | kernel-top.sh) ;; *) lines_of "$script" ;; esac
	done
}

# A script's lines but its totals, as they come.
lines_of() { # SCRIPT
	"$1" | grep --line-buffered -v '^[0-9]* passed, '
}

run_suite() { # SUITE
	echo "suite ${1/#kernel_*/system}"
	case $1 in
	smoke) lines_of tests/vm/smoke.sh ;;
	pids) lines_of tests/vm/pids.sh ;;
	unit) run_criterion "$BUILD/tests/unit-tests" '*/*' ;;
	system) run_criterion "$BUILD/tests/system-tests" '!(replay_*)/*' ;;
	scripts) run_scripts ;;
	kernel_*) run_criterion "$BUILD/tests/system-tests" "$1/*" ;;
	*) echo "FAIL $1: no such suite" ;;
	esac
}

echo "kernel $(uname -r)"
mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
for suite; do
	run_suite "$suite"
done
echo "guest done"
