#!/bin/bash
# guest.sh - what runs inside a guest, as root, on the host's files: a line for each test
#
# usage: tests/night/vm/guest.sh SUITE...
#
# A SUITE is smoke, pids, service, capabilities, unit, scripts, system, one of the system tests' own, as
# kernel_vectors, or a bash test by its path. The first line is "kernel VERSION". For each suite comes a line "suite NAME",
# then one for each test: "ok NAME", "FAIL NAME: why" or "skip NAME: why", with what else there is to
# say of it indented. A suite that breaks off, or has no test to tell of, has failed. The last line is
# "guest done".
set -u
exec 2>&1
cd "$(dirname "$0")/../../.." || exit 1

export BUILD=${BUILD:-build} PROFIL_TEST_OVER=kernel
export PROFIL_PRELOAD=$PWD/$BUILD/libprofil.so.1 TMPDIR=/tmp
export PROFIL_TEST_UPHEAVAL='cpus clock' # nothing else runs here
totals='^[0-9]* passed, [0-9]* failed, [0-9]* skipped$'
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# The lines of a TAP file, with the words of a failure behind it. Criterion tells of a test that its
# filter left out as of a skipped one.
criterion_lines() { # TAP
	sed -n -e 's/^ok - \([^ ]*\) .*# SKIP \(.*\)/skip \1: \2/p' -e t \
		-e 's/^ok - \([^ ]*\).*/ok \1/p' -e 's/^not ok - \([^ ]*\).*/FAIL \1/p' \
		-e 's/^  /  /p' "$1" | grep -v '^skip .*: test was skipped$'
}

run_criterion() { # BINARY FILTER
	local tap=$scratch/tap status

	: >"$tap"
	"$1" -j1 --timeout 300 --tap="$tap" --filter "$2" >"$scratch/words" 2>&1
	status=$?
	criterion_lines "$tap" >"$scratch/lines"
	cat "$scratch/lines"
	if ! grep -qE '^(ok|FAIL|skip) ' "$scratch/lines"; then
		echo "FAIL ${1##*/}: ended with status $status and told of no test of $2"
		sed 's/^/  /' "$scratch/words"
	elif test "$status" -ne 0 && ! grep -q '^FAIL ' "$scratch/lines"; then
		echo "FAIL ${1##*/}: ended with status $status, but no test had failed"
		sed 's/^/  /' "$scratch/words"
	fi
}

# Prints the binary that has the suite.
holding() { # SUITE
	if "$BUILD/tests/night-tests" --list | grep -q "^$1: "; then
		echo "$BUILD/tests/night-tests"
	else
		echo "$BUILD/tests/gate-tests"
	fi
}

# Those that look at what the kernel does. What is made of a profile is the same everywhere; perf and
# diff, with their thousands of samples, take too long in emulation, and so does what top would cost.
run_scripts() {
	local script

	for script in tests/gate/both/conformance.sh tests/{gate,night}/kernel/*.sh; do
		case ${script##*/} in perf.sh | diff.sh | top.sh) ;; *) lines_of "$script" ;; esac
	done
}

# A script's lines but its totals, as they come.
lines_of() { # SCRIPT
	local status

	# busybox's grep has no --line-buffered
	"$1" | tee "$scratch/lines" | awk -v totals="$totals" '$0 !~ totals { print; fflush() }'
	status=${PIPESTATUS[0]}
	if ! tail -n 1 "$scratch/lines" | grep -q "$totals"; then
		echo "FAIL ${1##*/}: ended with status $status and without its totals"
	elif test "$status" -ne 0 && ! grep -q '^FAIL ' "$scratch/lines"; then
		echo "FAIL ${1##*/}: ended with status $status, but no test had failed"
	fi
}

run_suite() { # SUITE
	local name=${1##*/}

	name=${name%.sh}
	echo "suite ${name/#kernel_*/system}"
	case $1 in
	smoke | pids | service) lines_of "tests/night/vm/$1.sh" ;;
	capabilities) lines_of tests/night/hostile/capabilities.sh ;;
	unit) run_criterion "$BUILD/tests/unit-tests" '*/*' ;;
	system) run_criterion "$BUILD/tests/gate-tests" '!(replay_*)/*'; run_criterion "$BUILD/tests/night-tests" '*/*' ;;
	scripts) run_scripts ;;
	kernel_*) run_criterion "$(holding "$1")" "$1/*" ;;
	*.sh) lines_of "$1" ;;
	*) echo "FAIL $1: no such suite" ;;
	esac
}

echo "kernel $(uname -r)"
mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
test $# -gt 0 || echo "FAIL guest: it was told of no suite"
for suite; do
	run_suite "$suite"
done
echo "guest done"
