#!/bin/bash
# events.sh - samples of events in real programs agree with perf's of the same run
#
# Both take a sample for each event, so their counts are of the same thousands of events.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")
judge=tests/night/kernel/perf.py

needs perf "perf counts the same events"

# COMMS: the processes whose samples are compared; not profilctl's own.
same() { # NAME EVENT COMMS COMMAND...
	local name=$1 event=$2 comms=$3 json=$dir/json perf=$dir/perf

	shift 3
	# 16 MiB for each CPU hold all of a run's samples, should perf be late to read them.
	if ! perf record -q -m 16M -e "$event" -c 1 -g -o "$perf" -- \
		"$ctl" record --native -e "$event" -o "$dir/kept" -- "$@" >"$dir/out" 2>&1; then
		fail "record samples the $name" "$*: $(tail -n 5 "$dir/out")"
		return
	fi
	"$ctl" report --fold-kernel -f json "$dir/kept" >"$json"
	check "no sample of the $name is lost" jq -e '.samples.total > 0 and .samples.lost == 0 and
		([.functions[].samples] | add) == .samples.binned' "$json"
	check "the $name are as many as perf's" "$judge" count "$json" "$perf" "$comms"
	case $name in
	*short*) ;;
	*) check "the ten functions with the most $name are perf's" "$judge" every "$json" "$perf" "$comms" ;;
	esac
}

names() {
	"$ctl" list --events >"$dir/out" || return
	for name in page-faults context-switches cpu-migrations; do
		grep -qx "$name" "$dir/out" || return
	done
	! "$ctl" record -e no-such-event -- true 2>"$dir/out" && grep -q 'unknown event' "$dir/out"
}

# $i is the inner shell's, here and below.
# shellcheck disable=SC2016
tracepoint() {
	"$ctl" record -e syscalls:sys_enter_write -f json -o "$dir/json" -- \
		sh -c 'i=0; while test $i -lt 1000; do echo; i=$((i + 1)); done' >/dev/null || return
	jq -e '.samples.total >= 1000 and .samples.total < 1100' "$dir/json" || return
	"$ctl" record -e syscalls:sys_enter_write -c 10 -f json -o "$dir/json" -- \
		sh -c 'i=0; while test $i -lt 1000; do echo; i=$((i + 1)); done' >/dev/null || return
	jq -e '.samples.total >= 98 and .samples.total < 112' "$dir/json"
}

# The period of an event at a frequency varies, so that the number of events is unknown. The kernel begins with
# periods that a short program may not fill, so faults come for as long as there is no sample.
frequency() {
	local rounds=300000

	until "$ctl" record -e page-faults -F 999 -- /usr/bin/python3 -c "x = [str(i) for i in range($rounds)]" 2>"$dir/out" &&
		! grep -q '^no samples' "$dir/out"; do
		test $((rounds *= 2)) -lt 30000000 || return
	done
}

# Formats for samples of time.
of_time() { # FORMAT
	"$ctl" record -e page-faults -f "$1" -o "$dir/none" -- touch "$dir/ran" 2>"$dir/stderr"
	test $? -eq 2 && grep -q "^profilctl: -f $1 is for samples of time" "$dir/stderr" && test ! -e "$dir/none" && test ! -e "$dir/ran"
}

daemon_start
check "record -e page-faults -f gmon is refused before the command runs" of_time gmon
check "an event at a frequency has no column of events" frequency
same "page faults of a compiler" page-faults gcc,cc1,as \
	"${CC:-gcc}" -O2 -c -o "$dir/object" tests/programs/spin.c
# Without the comparison of ten functions: execve() faults after it has removed the caller's image, and
# only perf still knows the caller's function.
# shellcheck disable=SC2016
same "page faults of short processes" page-faults sh,true \
	sh -c 'i=0; while test $i -lt 300; do /bin/true; i=$((i + 1)); done'
same "page faults of python" page-faults python3 \
	/usr/bin/python3 -c 'import json, decimal, email.message; x = [str(i) for i in range(300000)]'
same "context switches of a pipeline" context-switches sh,yes,head,cat,wc \
	sh -c 'yes | head -c 100000000 | cat | wc -c'
check "list --events names the events" names
if "$ctl" list --events 2>/dev/null | grep -qx syscalls:sys_enter_write; then
	check "a tracepoint is sampled each time, or once per period" tracepoint
else
	skip "a tracepoint is sampled each time, or once per period" "this kernel has no tracepoints of system calls"
fi
daemon_stop
finish
