#!/bin/bash
# leftovers.sh - a program, target, profiler or daemon that ends leaves nothing in daemon or kernel
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

exec 2>/dev/null # bash reports every killed process
PATH=$PATH:/usr/sbin
ctl=$BUILD/profilctl
split=$BUILD/tests/programs/split.linked

# Prints the BPF programs, maps and links that a process holds: "KIND ID" each.
held() { # PID
	cat "/proc/$1/fdinfo/"* 2>/dev/null | awk -F '[_:\t ]+' '/^(prog|map|link)_id:/ { print $1, $3 }' | sort -u
}

# The kernel frees an object some RCU grace periods after its last reference. Ids are not reused.
gone() { # FILE
	local kind id left=

	while read -r kind id; do
		bpftool "$kind" show id "$id" >/dev/null 2>&1 && left="$left $kind $id"
	done <"$1"
	echo "left:$left"
	test -z "$left"
}

# Prints the daemon's links but iterators, which run only when they are read.
attached() {
	grep -hE '^link_(type|id):' "/proc/$daemon/fdinfo/"* | paste - - | grep -v 'iter'
}

# Prints how many programs of the tick the daemon has: one to begin with, and one that counts places.
tick_programs() {
	local kind id

	held "$daemon" | while read -r kind id; do
		test "$kind" != prog || bpftool prog show id "$id"
	done | grep -c ' name tick_or_exit '
}

# The daemon holds no BPF link.
unattached() {
	attached
	test $? -eq 1
}

profiles_are() { # NUMBER
	"$ctl" status | tee "$dir/status" | grep -q "^profiles *$1, "
	test "${PIPESTATUS[2]}" -eq 0 || {
		cat "$dir/status"
		return 1
	}
}

# The daemon has no profile and no BPF link, and serves the next program.
unharmed() { # AFTER WHAT
	check "no profile is left after $1" await $$ profiles_are 0
	check "no BPF link is left after $1" await $$ unattached
	check "the next program is profiled after $1" "$split" 0.05
}

is_sleep() { # PID
	test "$(cat "/proc/$1/comm")" = sleep
}

# Makes a process, $target, and a reader of its profile, $reader. The profile is there a moment before
# the process is in it, which list shows: a process that ends in between is an error.
attach() {
	sleep 100 &
	target=$!
	await $$ is_sleep "$target" # an attach ends at an exec
	"$ctl" attach -f json -o "$dir/json" "$target" 2>"$dir/err" &
	reader=$!
	await_listed "^ *$target .* attachment " "$reader"
}

daemon_start
check "an idle daemon has programs and maps loaded" test -n "$(held "$daemon")"
check "an idle daemon has no BPF links" await $$ unattached
check "a daemon without attachments has no program for places" test "$(tick_programs)" = 1

"$split" 100 >/dev/null &
program=$!
check "the daemon has a profile while a program runs" await $$ profiles_are 1
check "the daemon has BPF links while a program is profiled" await $$ attached
kill -KILL "$program"
wait "$program"
unharmed "a profiled program was killed"

for i in $(seq 20); do
	"$ctl" record -q -F 1000 -f json -o "$dir/json" -- true || echo "record $i: $?"
done >"$dir/out" 2>&1
check "record profiles 20 commands that end at once" test ! -s "$dir/out"
unharmed "commands that ended at once"

check "record profiles a command on the tick" "$ctl" record -q -F 50 -f json -o "$dir/json" -- "$split" 0.5
check "that has samples" jq -e '.samples.total > 0' "$dir/json"
if printf '6.8\n%s\n' "$(uname -r)" | sort -CV; then
	check "it has loaded the program that counts places" test "$(tick_programs)" = 2
else
	skip "it has loaded the program that counts places" "before Linux 6.8 the daemon starts with it"
fi
unharmed "a recording on the tick"

for i in $(seq 20); do
	"$split" 0 >"$dir/split" 2>&1 || echo "split $i: $? $(cat "$dir/split")"
done >"$dir/out" 2>&1
check "20 programs profile themselves and end at once" test ! -s "$dir/out"
unharmed "programs that ended at once"

attach
kill "$target"
wait "$reader"
check "attach writes a report when its process is killed" test $? -eq 0
unharmed "an attached process was killed"

attach
kill -KILL "$reader"
wait "$reader"
unharmed "a profiler was killed"
check "an attached process keeps running when its profiler is killed" kill "$target"
wait "$target"

mkfifo "$dir/go"
"$split" 0.1 on <"$dir/go" >"$dir/split" 2>&1 & # until the end of its input
program=$!
exec {go}>"$dir/go"
await $$ attached
held "$daemon" >"$dir/held"
check "the daemon has BPF links before it ends" grep -q '^link' "$dir/held"
daemon_stop
check "the kernel frees the daemon's programs, maps and links" await $$ gone "$dir/held"
exec {go}>&-
wait "$program"
check "a profiled program outlives the daemon" test $? -eq 0

PROFIL_SOCKET=$dir/no-daemon
"$ctl" record -f json -o "$dir/json" -- sleep 100 2>"$dir/err" &
reader=$!
private_is_there() {
	pgrep -P "$reader" -x profild >"$dir/private" && held "$(cat "$dir/private")" | tee "$dir/held" | grep '^link'
}
check "record starts a daemon of its own" await $$ private_is_there
kill -INT "$reader"
wait "$reader"
check "record ends: $(cat "$dir/err")" test $? -eq 0
kill "$(jq .pid "$dir/json")"
check "record's own daemon ends with it" test ! -e "/proc/$(cat "$dir/private")/fd"
check "the kernel frees the programs, maps and links of record's own daemon" await $$ gone "$dir/held"
finish
