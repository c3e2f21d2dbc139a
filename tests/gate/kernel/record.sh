#!/bin/bash
# record.sh - record and its command: output, terminal, signals and exit status
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
profile=$dir/profile

# ok when record returns STATUS. The output of record and the command goes to $dir/out and $dir/err.
records() { # NAME STATUS ARGS...
	local name=$1 status=$2 got

	shift 2
	"$ctl" record "$@" >"$dir/out" 2>"$dir/err" </dev/null
	got=$?
	if test "$got" -eq "$status"; then ok "$name"; else fail "$name" "it ended with $got: $(cat "$dir/err")"; fi
}

# ok when $dir/err has at most one line, which matches REGEX.
said() { # NAME REGEX
	if test "$(wc -l <"$dir/err")" -le 1 && [[ $(cat "$dir/err") =~ ^$2$ ]]; then ok "$1"; else fail "$1" "it said: $(cat "$dir/err")"; fi
}

daemon_start

# Prints how many perf events the daemon has open during a recording.
events_during() { # OPTIONS...
	# shellcheck disable=SC2016 # another shell's
	"$ctl" record -q "$@" -o "$dir/events" -- sh -c 'ls -l "/proc/$1/fd" | grep -c perf_event' sh "$daemon"
}

# The tick has the first rate everywhere.
if test "$(events_during -F 50)" -eq 0; then
	check "record -e cpu-clock uses perf events at a rate that the tick has" test "$(events_during -e cpu-clock -F 50)" -gt 0
else
	skip "record -e cpu-clock uses perf events at a rate that the tick has" "perf events are used at all rates"
fi

# -c of cpu-clock is in ns of CPU time: 7777777 is no whole number of Hz.
# shellcheck disable=SC2016 # another shell's
records "record takes -c of cpu-clock" 0 -e cpu-clock -c 7777777 -f json -o "$dir/json" -- \
	sh -c 'i=0; while test $i -lt 1000000; do i=$((i + 1)); done'
said "record says nothing but what it wrote with -c of cpu-clock" "profilctl: wrote .*"
check "a sample of cpu-clock stands for the ns of -c" jq -e '.tick_ns == 7777777 and (has("event") | not)' "$dir/json"
for rate in '-c 999999' '-F 1001'; do
	# shellcheck disable=SC2086 # an option and its value
	setpriv --reuid=65534 --regid=65534 --clear-groups "$ctl" record -e cpu-clock $rate -- true 2>"$dir/err"
	check "record refuses a user a higher rate than the daemon's limit with $rate" test $? -eq 125
	said "record says that the rate is the reason with $rate" "profilctl: .* at that rate: permission denied .*"
done
setpriv --reuid=65534 --regid=65534 --clear-groups "$ctl" record -q -e cpu-clock -c 1000000 -- true 2>"$dir/err"
check "record takes a period at the daemon's limit of users" test $? -eq 0
head -c 20000000 /dev/urandom | base64 -w 76 >"$dir/text"

# Standard output belongs to the command.
# shellcheck disable=SC2016 # another shell's
check "record prints nothing to the command's standard output" bash -c \
	'set -o pipefail; "$1" record -- gzip -1 -c "$2" 2>/dev/null | gunzip -t' - "$ctl" "$dir/text"
records "record prints its report to standard error" 0 -F 999 -- gzip -1 -c "$dir/text"
check "the report has the command's functions" grep -qE '^ *[0-9.]+ %.* gzip$' "$dir/err"
check "the report has the command's exit status" grep -qx 'the command exited with status 0' "$dir/err"
check "the command's output is complete" cmp "$dir/text" <(gunzip <"$dir/out")
records "another format needs -o" 2 -f json -- touch "$dir/ran"
said "record refuses another format without -o in one line" "profilctl: record: -f json needs -o FILE .*"
check "record refuses another format before the command runs" test ! -e "$dir/ran"
records "-o - writes to standard output" 0 -f json -o - -- sh -c :
check "-o - writes a complete JSON document" jq -e '.schema == "profil/1"' "$dir/out"
records "-o - accepts a profile" 0 -o - -- sh -c :
check "report reads what -o - writes" "$ctl" report - <"$dir/out"
records "-q prints nothing" 0 -q -- sh -c 'echo its own'
said "-q prints nothing to standard error" ''
check "-q does not change the command's output" test "$(cat "$dir/out")" = "its own"

# record -o prints one line.
records "record -o returns the command's exit status" 7 -o "$profile" -- sh -c 'exit 7'
said "record -o prints one line: samples, file and exit status" \
	"profilctl: wrote [0-9]+ samples of [0-9.]+ s to $profile; the command exited with status 7"
records "record -o returns 137 for a command killed by SIGKILL" 137 -o "$profile" -- sh -c 'kill -KILL $$'
said "record -o prints one line with the signal" "profilctl: wrote .* to $profile; the command was killed by signal 9 \(Killed\)"
records "record -d returns 0" 0 -d 0.2 -o "$profile" -- sleep 1000
said "record -d says that the command is still running" "profilctl: wrote .* to $profile; the command runs on \(pid [0-9]+\)"
check "the command is still running after record -d" kill "$(sed 's/.*pid \([0-9]*\).*/\1/' "$dir/err")"
records "record -d returns 0 with a text report" 0 -d 0.2 -- sleep 1000
check "record -d ends its text report with the command's pid" grep -qE '^profilctl: the command runs on \(pid [0-9]+\)$' <(tail -n 1 "$dir/err")
kill "$(sed -n 's/.*runs on (pid \([0-9]*\)).*/\1/p' "$dir/err")"
# shellcheck disable=SC2016 # another shell's
"$ctl" record -o "$profile" -- sh -c 'touch "$1"; exec sleep 1000' - "$dir/began" 2>"$dir/err" &
record=$!
await "$record" test -e "$dir/began"
kill "$record"
wait "$record"
check "record returns 0 on SIGTERM" test $? -eq 0
said "record ended by SIGTERM says that the command is still running" "profilctl: wrote .* to $profile; the command runs on \(pid [0-9]+\)"
check "the command is still running after SIGTERM to record" kill "$(sed 's/.*pid \([0-9]*\).*/\1/' "$dir/err")"

# Exit statuses of record itself.
records "record returns 127 for a command that is not found" 127 -o "$profile" -- no-such-command
said "record names a command that is not found" "profilctl: cannot run no-such-command: command not found"
records "record returns 127 for a mode of call graphs as perf takes it" 127 -o "$profile" --call-graph dwarf,8192 true
said "record names the option for this mode" \
	"profilctl: cannot run dwarf,8192: command not found \(perf's '--call-graph dwarf,8192' is --call-graph=cfi, or just -g\)"
records "record returns 127 for a path that does not exist" 127 -o "$profile" -- "$dir/none"
records "record returns 126 for a file that cannot be executed" 126 -o "$profile" -- "$dir/text"
said "record names a file that cannot be executed" "profilctl: cannot run $dir/text: Permission denied"
records "record returns 125 for an output that cannot be written" 125 -o "$dir/no/profile" -- touch "$dir/ran"
check "record checks its output before it runs the command" test ! -e "$dir/ran"
records "record returns 125 for an invalid socket path" 125 -s "/$(printf %0120d 1)" -- true
if unshare -Ur true 2>/dev/null; then
	unshare -Ur "$ctl" record -s "$dir/none" -- true 2>"$dir/err"
	said "record in a user namespace says in one line why it cannot begin" "profilctl: .*user namespace may not load BPF programs"
else
	skip "record in a user namespace says in one line why it cannot begin" "no user namespaces"
fi
records "record returns 2 at a rate that the tick does not have" 2 --clock tick -F 4999 -s "$dir/none" -- true
said "record says that the tick has the kernel's rate" "profilctl: the tick does not count .*CONFIG_HZ .*"
records "record returns 2 for an invalid option" 2 -F 0 -- true
# The samples are nowhere else, so that a failed write must not lose them.
mkdir "$dir/rescue"
TMPDIR=$dir/rescue records "record returns 125 when the disk is full" 125 -f json -o /dev/full -- gzip -1 -c "$dir/text"
check "record says that the disk is full" grep -q '^profilctl: cannot write /dev/full: no space left on device$' "$dir/err"
check "record names the file with the profile" grep -qF "profilctl: the profile is in $(echo "$dir"/rescue/profil.*) instead" "$dir/err"
check "the profile of a full disk is whole" sh -c "'$ctl' report '$dir'/rescue/profil.* | grep -q gzip"
TMPDIR=$dir/none records "record returns 125 where no file can be written" 125 -f json -o /dev/full -- gzip -1 -c "$dir/text"
check "record writes the profile as text where no file can be written" grep -q ' gzip$' "$dir/err"

# -a selects processes; rows are those of every report.
records "record -a profiles everything while the command runs" 0 -a -F 4999 -- gzip -1 -c "$dir/text"
# shellcheck disable=SC2016 # awk's
check "record -a leaves out rows with few samples" awk '$2 == "%" && $1 < 0.5 && !/ more, / { print; n++ } END { exit n > 0 }' "$dir/err"

"$ctl" record -F 4999 -o "$dir/kept" -- gzip -1 -c "$dir/text" >/dev/null 2>"$dir/err" || cat "$dir/err"
# shellcheck disable=SC2016 # jq's
check "the samples of functions and places add up" jq -e '.samples as $s | $s.binned > 0 and
	$s.total == $s.binned + $s.unmatched + $s.lost and
	([.places[][3]] | add) == $s.binned and ([.functions[].samples] | add) == $s.binned' "$dir/kept"

# What a report shows of a thread is as it was at the sample: its name, and its user.
# shellcheck disable=SC2016 # another shell's
"$ctl" record -q --threads -o "$dir/kept" -- sh -c 'work() { i=0; while test $i -lt 150000; do i=$((i + 1)); done; }
	printf before >/proc/$$/comm; work; printf after >/proc/$$/comm; work'
for name in before after; do
	check "samples of a thread named '$name' for a while have that name" sh -c "$ctl report --by thread -a '$dir/kept' | grep -q ' $name ('"
	check "samples of a process named '$name' for a while have that name" sh -c "$ctl report --by command -a '$dir/kept' | grep -q ' $name\$'"
done
"$ctl" record -q -o "$dir/kept" -- python3 -c 'import os
def work():
    for i in range(2000000): pass
work(); os.setuid(65534); work()'
check "samples of a process that changes its user are of two users" jq -e '[.groups[] | select(.command | startswith("python")) | .uid] | unique == [0, 65534]' "$dir/kept"

daemon_stop
finish
