#!/bin/bash
# kernel-leftovers.sh - whatever ends, and however: nothing of it is left in the daemon or the kernel
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

exec 2>/dev/null # of processes that are killed bash tells all
PATH=$PATH:/usr/sbin
ctl=$BUILD/profilctl
split=$BUILD/tests/programs/split.linked
wait_s=30

# The programs, maps and links that a process holds: "KIND ID" each.
held() { # PID
	cat "/proc/$1/fdinfo/"* 2>/dev/null | awk -F '[_:\t ]+' '/^(prog|map|link)_id:/ { print $1, $3 }' | sort -u
}

# True as soon as the command is; after a while it is not.
soon() { # COMMAND...
	local end=$((SECONDS + wait_s))

	until "$@" >"$dir/soon" 2>&1; do
		if test "$SECONDS" -ge "$end"; then
			echo "not within $wait_s s: $(cat "$dir/soon")"
			return 1
		fi
	done
}

# The kernel frees what nobody holds some grace periods later. Its ids are not given twice.
gone() { # FILE
	local kind id left=

	while read -r kind id; do
		bpftool "$kind" show id "$id" >/dev/null 2>&1 && left="$left $kind $id"
	done <"$1"
	echo "left:$left"
	test -z "$left"
}

# The daemon holds nothing that would make the kernel call us.
unattached() {
	held "$daemon" | grep '^link'
	test "${PIPESTATUS[1]}" -eq 1
}

profiles_are() { # NUMBER
	"$ctl" status | tee "$dir/status" | grep -q "^profiles *$1, "
	test "${PIPESTATUS[2]}" -eq 0 || {
		cat "$dir/status"
		return 1
	}
}

# It says so by leaving no profile, nothing attached, and by serving the next one.
unharmed() { # AFTER WHAT
	check "$1: no profile is left" soon profiles_are 0
	check "$1: nothing is attached" soon unattached
	check "$1: the next is served" "$split" 0.05
}

is_sleep() { # PID
	test "$(cat "/proc/$1/comm")" = sleep
}

# Makes a process, $target, and a reader of its profile, $reader.
attach() {
	sleep 100 &
	target=$!
	soon is_sleep "$target" # an attach ends at an exec
	"$ctl" attach -f json -o "$dir/json" "$target" 2>"$dir/err" &
	reader=$!
	soon profiles_are 1
}

daemon_start
check "an idle daemon has programs and maps loaded" test -n "$(held "$daemon")"
check "an idle daemon has nothing attached" soon unattached

"$split" 100 >/dev/null &
program=$!
check "a program is profiled" soon profiles_are 1
check "... by what is attached meanwhile" sh -c '! "$@"' - unattached
kill -KILL "$program"
wait "$program"
unharmed "a profiled program is killed"

for i in $(seq 20); do
	"$ctl" record -F 1000 -f json -o "$dir/json" -- true || echo "record $i: $?"
done >"$dir/out" 2>&1
check "20 commands that are over at once" test ! -s "$dir/out"
unharmed "commands that are over at once"

for i in $(seq 20); do
	"$split" 0 >"$dir/split" 2>&1 || echo "split $i: $? $(cat "$dir/split")"
done >"$dir/out" 2>&1
check "20 programs that are over at once" test ! -s "$dir/out"
unharmed "programs that are over at once"

attach
kill "$target"
wait "$reader"
check "a target that is killed: the report is made" test $? -eq 0
unharmed "a target is killed"

attach
kill -KILL "$reader"
wait "$reader"
unharmed "a reader is killed"
check "a reader is killed: its target runs on" kill "$target"
wait "$target"

"$split" 2 >"$dir/split" 2>&1 &
program=$!
soon profiles_are 1
held "$daemon" >"$dir/held"
check "a program is profiled, and a daemon that ends" grep -q '^link' "$dir/held"
daemon_stop
check "nothing of the daemon is left in the kernel" soon gone "$dir/held"
wait "$program"
check "the program did not notice" test $? -eq 0

PROFIL_SOCKET=$dir/nobody
"$ctl" record -d 0.5 -f json -o "$dir/json" -- sleep 100 2>"$dir/err" &
reader=$!
private_is_there() {
	pgrep -P "$reader" -x profild >"$dir/private" && held "$(cat "$dir/private")" | tee "$dir/held" | grep '^link'
}
check "profilctl starts a daemon of its own" soon private_is_there
wait "$reader"
check "... and ends" test $? -eq 0
kill "$(jq .pid "$dir/json")"
check "... with it" test ! -e "/proc/$(cat "$dir/private")/fd"
check "... and nothing of it is left in the kernel" soon gone "$dir/held"
finish
