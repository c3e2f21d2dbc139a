#!/bin/bash
# habits.sh - command lines that users of perf and GNU tools type out of habit
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl

# ok when profilctl returns STATUS and prints one line on stderr: LINE, after "profilctl: ".
says() { # NAME STATUS LINE ARGS...
	local name=$1 status=$2 line=$3 got

	shift 3
	"$ctl" "$@" >"$dir/stdout" 2>"$dir/stderr"
	got=$?
	if test "$got" -eq "$status" && test "$(cat "$dir/stderr")" = "profilctl: $line"; then
		ok "$name"
	else
		fail "$name" "profilctl $* ended with $got, not $status, and said: $(cat "$dir/stderr")"
	fi
}

# Verbs.
says "a mistyped verb gets a suggestion" 2 "unknown verb recrod: did you mean 'profilctl record'?" recrod
says "a verb's beginning gets a suggestion" 2 "unknown verb anno: did you mean 'profilctl annotate'?" anno
says "a verb of perf gets profilctl's equivalent" 2 \
	"unknown verb script: did you mean 'profilctl report -f folded'?" script
says "an unknown word gets no suggestion" 2 "unknown verb xyzzy; 'profilctl --help' lists the verbs" xyzzy
says "a program gets the verb that profiles it" 2 \
	"unknown verb /bin/sh: to profile a command, 'profilctl record -- /bin/sh'" /bin/sh
says "an option before the verb is named" 2 \
	"invalid option --json: options follow the verb; 'profilctl --help' lists the verbs" --json list
check "help VERB prints the verb's help" cmp <("$ctl" help top) <("$ctl" top --help)

# The message names the wrong token.
says "a mistyped option gets a suggestion" 2 \
	"list: invalid option --josn (did you mean --json?); 'profilctl list --help' lists the options" list --josn
says "an invalid letter among valid ones is named" 2 \
	"top: invalid option -x; 'profilctl top --help' lists the options" top -bx
says "a value of an option without one is named" 2 "list: option --json takes no value: --json=3" list --json=3
says "a missing value is named" 2 "attach: option -d needs a value: SECONDS" attach -d
says "list --events takes no operand" 2 "list: takes no arguments" list --events junk
says "the option is named as it was typed" 2 \
	"record: --rate 0: must be a whole number from 1 to 50000 Hz" record --rate=0 true
says "a wrong pid among valid ones is named" 2 "'2x' is not a process id" attach -p "$$,2x"
says "a mode of call graphs as perf takes it is named" 2 \
	"'fp' is not a process id (perf's '--call-graph fp' is --call-graph=fp)" attach --call-graph fp $$
says "an empty pid is named" 2 "'' is not a process id" attach "$$,"

# The parts of "machine" have their own options, before or after the part's name.
says "machine top has no end by time" 2 \
	"machine top: invalid option -d; 'profilctl machine top --help' lists the options" machine -d 10 top
says "machine top writes no file" 2 \
	"machine top: invalid option -o; 'profilctl machine top --help' lists the options" machine top -o "$dir/none"
says "machine status has no format but JSON" 2 \
	"machine status: invalid option -f; 'profilctl machine status --help' lists the options" machine status -f text
says "machine off takes no rate" 2 \
	"machine off: invalid option -F; 'profilctl machine off --help' lists the options" machine off -F 100
says "machine without a part is machine status" 2 \
	"machine status: invalid option --rows; 'profilctl machine status --help' lists the options" machine --rows 3
says "machine diff of two files takes no time" 2 \
	"machine diff: -d is for the machine's profile: leave out the files, or -d" machine diff -d 1 a b
check "machine top --help lists its options only" sh -c "'$ctl' machine top --help | grep -q -- '-n, --count N' &&
	! '$ctl' machine top --help | grep -q -- '--by'"

# Options after operands.
says "report accepts options after the file" 2 \
	"report: --by colour: must be function, inlined, line, instruction, object, process, command, thread, cgroup, unit, container, host, wait or lock" report file --by colour
says "attach accepts options after the pid" 2 \
	"attach: -F 0: must be a whole number from 1 to 50000 Hz" attach $$ -F 0
says "report -i names the file" 1 \
	"cannot read $dir/none: No such file or directory; profilctl reads what 'profilctl record -o FILE' writes" \
	report --stdio -i "$dir/none"
says "annotate -i names the file" 1 \
	"cannot read $dir/none: No such file or directory; profilctl reads what 'profilctl record -o FILE' writes" \
	annotate -i "$dir/none" main
says "-p and an operand must not name the same process" 2 "process $$ is named twice" attach -p $$ $$

# Options of perf without an equivalent.
says "--call-graph refuses an unknown mode" 2 \
	"record: --call-graph lbr: must be auto, cfi (unwind tables) or fp (frame pointers)" record --call-graph=lbr true
says "--sort suggests --by" 2 \
	"report: --sort parent: rows are sorted by samples; use --by function, inlined, line, instruction, object, process, command, thread, cgroup, unit, container, host, wait or lock" \
	report file --sort parent
says "record -p with a command suggests attach -d" 2 \
	"record: -p excludes operands; 'profilctl attach -d SECONDS PID' profiles for so long" record -p $$ true

# A format that has all rows refuses an option that it would ignore.
sample_profile "$dir/profile"
for option in "--by instruction" "-n 3" "--percent-limit 1" "--all" "--full-names"; do
	for format in json html folded; do
		# shellcheck disable=SC2086 # an option and its value
		"$ctl" report $option -f $format "$dir/profile" >"$dir/stdout" 2>"$dir/stderr"
		check "report $option -f $format is refused" grep -q " is for text, and -f $format has all rows" "$dir/stderr"
	done
done
says "report --by cgroup --json is refused" 2 "report: --by is for text, and -f json has all rows: leave out one of them" \
	report --by cgroup --json "$dir/profile"
check "report --by instruction -f text is not refused" "$ctl" report --by instruction -f text "$dir/profile"

# Options of perf with an equivalent.
sample_profile "$dir/profile"
check "report --sort overhead,dso groups by object" cmp <("$ctl" report --sort overhead,dso "$dir/profile") \
	<("$ctl" report "$dir/profile" --by object)
for key in "comm command" "pid process" "tid thread" "comm,pid process" "dso,comm object" "pid,sym function" "srcline,sym line"; do
	check "report --sort ${key% *} groups by ${key#* }" cmp <("$ctl" report --sort "${key% *}" "$dir/profile" 2>&1) \
		<("$ctl" report "$dir/profile" --by "${key#* }" 2>&1)
done
check "report -i reads the file" cmp <("$ctl" report --stdio -i "$dir/profile") <("$ctl" report "$dir/profile")
finish
