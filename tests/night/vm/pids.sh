#!/bin/bash
# pids.sh - a storm of forks with few pids: each pid is reused a hundred times
#
# In a guest, with its figures: PROFIL_VM_SUITES=pids tests/night/vm/run.sh bookworm
# PROFIL_TEST_STORM_S is how many seconds it takes, or up to ten times as long where the machine is slow.
set -u
cd "$(dirname "$0")/../../.." || exit 1

# The whole machine has no more pids then: only a guest may be told so.
if ! grep -q virtme /proc/cmdline; then
	echo "skip pids: only in a guest of tests/night/vm/run.sh"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
echo 1024 >/proc/sys/kernel/pid_max || exit 1
PROFIL_TEST_STORM_S=${PROFIL_TEST_STORM_S:-60} PROFIL_TEST_WRAPS=${PROFIL_TEST_WRAPS:-100} \
	exec tests/night/kernel/forkstorm.sh
