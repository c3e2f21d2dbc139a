#!/bin/bash
# jitdump.sh - code that a JIT compiler describes in a jitdump has its name and callers, on this architecture
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
# shellcheck source=tests/lib/jitdump.sh
. tests/lib/jitdump.sh

# shellcheck disable=SC2034 # for record_jitdump
ctl=$BUILD/profilctl
daemon_start
record_jitdump "$BUILD/tests/programs/jitdump"
jitdump_stacks
finish
