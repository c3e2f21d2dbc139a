#!/bin/bash
# stacks.sh - stacks through signal handlers by tables of unwind rules, on this architecture
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
# shellcheck source=tests/lib/call_paths.sh
. tests/lib/call_paths.sh

# shellcheck disable=SC2034 # for signals
ctl=$BUILD/profilctl paths=$BUILD/tests/programs/paths
signals
finish
