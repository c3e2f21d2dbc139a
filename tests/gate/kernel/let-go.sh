#!/bin/bash
# let-go.sh - a recording closes the files that no process has mapped any more, and keeps their functions' names
# shellcheck disable=SC2016 # what is in quotes is for jq
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl

holds() { # FILE
	find "/proc/$recorder/fd" -lname "$1" 2>/dev/null | grep -q .
}

let_go() { # FILE
	! holds "$1"
}

has_function() { # FILE
	jq -e --arg path "$1" '[.functions[] | select(.object == $path) | .name] | index("spin_here")' "$dir/json"
}

# Starts FILE, and waits until it has samples. Its pid is $ran.
run() { # FILE
	"$1" &
	ran=$!
	await "$recorder" holds "$1"
	await_busy "$ran" "$1"
}

daemon_start
mkdir "$dir/mount"
mount -t tmpfs none "$dir/mount" 2>"$dir/mount.err" || {
	skip "a recording lets go of files" "$(cat "$dir/mount.err")"
	daemon_stop
	finish
}
trap 'umount "$dir/mount" 2>/dev/null; lib_end' EXIT
"${CC:-cc}" -O1 -o "$dir/mount/spin" -x c - <<<'__attribute__((noinline)) void spin_here(void) { for (;;) __asm__ volatile(""); }
	int main(void) { spin_here(); return 0; }'
for file in stays deleted runs; do cp "$dir/mount/spin" "$dir/$file"; done
"$ctl" attach -a -g -F 999 -f json -o "$dir/json" 2>"$dir/err" &
recorder=$!
await "$recorder" has_samples 1
run "$dir/runs"
runs=$ran
for file in mount/spin stays deleted; do
	run "$dir/$file"
	kill "$ran"
	wait "$ran" 2>/dev/null
done
rm "$dir/deleted"
check "a file system can be unmounted during a recording, after its programs have ended" await "$recorder" umount "$dir/mount"
check "a file is closed once no process has it mapped" await "$recorder" let_go "$dir/stays"
check "a file that a process has mapped stays open" holds "$dir/runs"
kill "$runs"
wait "$runs" 2>/dev/null
kill -INT "$recorder"
wait "$recorder"
check "the recording has ended well" test $? -eq 0
check "functions of an unmounted program have names" has_function "$dir/mount/spin"
check "functions of a program that has ended have names" has_function "$dir/stays"
check "functions of a deleted program have names" has_function "$dir/deleted"
daemon_stop
finish
