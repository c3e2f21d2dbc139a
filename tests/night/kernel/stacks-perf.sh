#!/bin/bash
# stacks-perf.sh - stacks of Debian's programs are as complete and right as those of perf record --call-graph dwarf
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

needs perf "perf's stacks of the same programs agree"
# Some 1000 samples of each profiler in each program, more of openssl.
export STACKS_S=${STACKS_S:-1} STACKS_HZ=${STACKS_HZ:-999}
tells tests/night/bench/stacks.py judge
finish
