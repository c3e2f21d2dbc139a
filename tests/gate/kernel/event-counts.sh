#!/bin/bash
# event-counts.sh - record -e counts each event of a program that causes a known number of them
#
# Each event has a sample of its own. What the program causes beside them, as faults of its start, is counted too.
# shellcheck source=tests/lib/event_counts.sh
. "$(dirname "$0")/../../lib/event_counts.sh"

# Counts of EVENT in a program that causes N by WHAT: the whole program has at least those of its own account, and
# FUNCTION 2 more at most, the pages of its code.
counts() { # EVENT FUNCTION N WHAT ARG...
	local event=$1 function=$2 n=$3 said status

	said=$(caused "$event" "$4" "$n" "${@:5}")
	status=$?
	if test "$status" -eq 77; then
		skip "each of $n $event is counted" "$said"
		return
	fi
	check "record -e $event returns 0" test "$status" -eq 0
	check "the program causes at least $n $event" test "${said:-0}" -ge "$n"
	check "each of $n $event is counted" test "$(samples)" -ge "$said"
	check "no sample of the $event is lost" jq -e '.samples.total == .samples.binned' "$dir/kept"
	# shellcheck disable=SC2016 # jq's variable
	check "the profile names $event as its event" jq -e --arg event "$event" \
		'.event == $event and .period == 1 and .tick_ns == 0' "$dir/kept"
	test -z "$function" || check "each of $n $event is counted in its function" within \
		"$said" "$(samples "$function")" $((said + 2))
}

# A major fault is no minor one.
not_minor() {
	local said

	said=$(caused minor-faults major 300 "$dir/pages")
	case $? in
	0) check "major faults are not counted as minor-faults" within 0 "$(samples read_pages)" 2 ;;
	77) skip "major faults are not counted as minor-faults" "$said" ;;
	*) fail "major faults are not counted as minor-faults" "$(cat "$dir/stderr")" ;;
	esac
}

switches() {
	local said

	said=$(caused sched:sched_switch sleep 1000)
	check "record -e sched:sched_switch returns 0" test $? -eq 0
	check "each of 1000 sleeps is counted by sched:sched_switch" test "$(samples)" -ge "$said"
	check "the program sleeps 1000 times" test "${said:-0}" -ge 1000
}

# A virtual machine often has no hardware counters.
cycles() {
	if ! has_event cycles; then
		"$ctl" record -e cycles -f json -o "$dir/none" -- touch "$dir/ran" 2>"$dir/stderr"
		check "record -e cycles returns 125 without a hardware counter" test $? -eq 125
		check "record -e cycles says that the machine has no such event" test "$(cat "$dir/stderr")" = \
			"profilctl: this machine has no event cycles; 'profilctl list --events' shows those that it has"
		check "record -e cycles does not run the command then" test ! -e "$dir/ran"
		check "record -e cycles writes no profile then" test ! -e "$dir/none"
	else
		check "record -e cycles has samples of a busy program" sh -c "'$ctl' record -q -e cycles -f json -o '$dir/json' -- \
			sh -c 'i=0; while test \$i -lt 300000; do i=\$((i + 1)); done' && jq -e '.samples.total > 0' '$dir/json'"
	fi
}

# CPUs with branch records are rarer still.
branches() {
	check "record --branches refuses -g" grep -q -- '--branches records no call stacks: leave out -g' <("$ctl" record --branches -g true 2>&1)
	check "record --branches refuses -c" grep -q -- '--branches takes samples at a rate: use -F in place of -c' \
		<("$ctl" record --branches -c 1000 true 2>&1)
	if ! has_event taken-branches; then
		"$ctl" record --branches -o "$dir/none" -- touch "$dir/ran" 2>"$dir/stderr"
		check "record --branches returns 125 without branch records" test $? -eq 125
		check "record --branches says what it has tried, why it failed and what to do" grep -qxE \
			"profilctl: cannot record branches: perf_event_open\(\) of cycles with branch records: .*: (this machine has no|the CPU, or) .* \\(leave out --branches: report -f llvm and -f bolt take samples of CPU time as well\)" \
			"$dir/stderr"
		check "record --branches does not run the command then" test ! -e "$dir/ran"
		check "record --branches writes no profile then" test ! -e "$dir/none"
		check "doctor says that branches cannot be recorded" grep -q '^note *branches *cannot be recorded: ' <("$ctl" doctor)
	else
		check "record --branches has branches of a busy program" sh -c "'$ctl' record -q --branches -o '$dir/kept' -- \
			sh -c 'i=0; while test \$i -lt 300000; do i=\$((i + 1)); done' && '$ctl' report -f bolt '$dir/kept' | grep -q '^F '"
		check "doctor says that branches can be recorded" grep -q '^ok *branches ' <("$ctl" doctor)
	fi
}

# Calls and static probes are met exactly so often, whatever else the machine does.
probes() {
	local probes=$dir/probes event

	check "a program with probes is built" "${CC:-gcc}" -O2 -g -o "$probes" tests/programs/probes.c
	if ! "$ctl" record -q -e "uprobe:$probes:counted" -o "$dir/kept" -- true 2>"$dir/stderr" && grep -q 'no uprobes' "$dir/stderr"; then
		skip "calls and static probes are counted" "$(cat "$dir/stderr")"
		return
	fi
	for event in "uprobe:$probes:counted 1000 counted" "usdt:$probes:profil_test:hit 2000 fire" \
		"usdt:$probes:profil_test:guarded 3000 fire_guarded"; do
		# shellcheck disable=SC2086 # three words
		set -- $event
		check "record -e $1 returns 0" "$ctl" record -q -g -e "$1" -o "$dir/kept" -- "$probes" 1000
		# shellcheck disable=SC2016 # jq's variables
		check "record -e $1 counts each one, in its function, called from main" jq -e --arg name "$3" --argjson n "$2" --arg event "$1" \
			'.samples.total == $n and .samples.binned == $n and .event == $event and .functions[0].name == $name and
			(.stacks as $s | [$s.frames[][0]] | index("main") != null and index($name) != null)' "$dir/kept"
	done
	refuses_probe "uprobe:$probes:nothing" "profilctl: event uprobe:$probes:nothing: the file has no such function or probe"
	refuses_probe "usdt:$probes:profil_test:nothing" "profilctl: event usdt:$probes:profil_test:nothing: the file has no such function or probe"
	refuses_probe uprobe:no-such-library.so:nothing "profilctl: event uprobe:no-such-library.so:nothing: there is no such file"
	refuses_probe "uprobe:tests/programs/probes.c:counted" "profilctl: event uprobe:tests/programs/probes.c:counted: it is not an ELF file"
}

refuses_probe() { # EVENT WORDS
	prints "record refuses -e $1" "$2" "$ctl" record -e "$1" -- true
}

daemon_start
probes
counts minor-faults write_pages 5000 minor
counts major-faults read_pages 300 major "$dir/pages"
not_minor
counts cpu-migrations '' 300 migrate
if has_event sched:sched_switch; then
	switches
else
	skip "each of 1000 sleeps is counted by sched:sched_switch" "this kernel has no such tracepoint"
fi
cycles
branches
daemon_stop
finish
