#!/bin/bash
# late-programs.sh - BPF programs that could not be loaded when they were first needed are loaded later
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
spin='for ((i = 0; i < 20000; i++)); do :; done'

shifter_start
preload=${shifted[1]}:${shifted[1]#LD_PRELOAD=}
preload=${preload%timeshift.so}no_load.so
under=(env "$preload" "NO_LOAD=$dir/no-load" "${shifted[2]}")
daemon_start
touch "$dir/no-load"
check "a record is refused while no program can be loaded" \
	sh -c "! '$ctl' record -q -F 499 -o '$dir/none' -- bash -c '$spin'"
check "the log has the reason" grep -q 'cannot load the BPF programs of perf events: Cannot allocate memory' "$dir/log"
rm "$dir/no-load"
shift_clocks 0 61
check "a minute later the same daemon records" "$ctl" record -q -F 499 -o "$dir/some" -- bash -c "$spin"
daemon_stop
finish
