#!/bin/bash
# lib.sh - what the bash tests share: verdicts, and a real profild for the time of a test
#
# A test sources this, gives verdicts by ok, fail, skip and check, and ends with finish. Its name
# says where it runs: kernel-*.sh only over the kernel (as root), replay-*.sh only over replay,
# any other twice. What stands in $dir goes when the test ends, and so does the daemon.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

BUILD=${BUILD:-build}
READY_S=120 # far more than a daemon under valgrind on a busy machine takes
passed=0 failed=0 skipped=0 daemon=
under=() # what profild is run by: valgrind ...
dir=$(mktemp -d "${PROFIL_TEST_DIR:-${TMPDIR:-/tmp}}/sh.XXXXXX") || exit 1
chmod 755 "$dir"
trap 'test -z "$daemon" || kill "$daemon"; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

ok() { # NAME
	passed=$((passed + 1))
	printf 'ok %s\n' "$1"
}

fail() { # NAME WHY
	failed=$((failed + 1))
	printf 'FAIL %s: %s\n' "$1" "$2"
}

skip() { # NAME WHY
	skipped=$((skipped + 1))
	printf 'skip %s: %s\n' "$1" "$2"
}

# ok when the command succeeds, without a word; else FAIL with what it said.
check() { # NAME COMMAND...
	local name=$1 said

	shift
	if said=$("$@" 2>&1); then
		ok "$name"
	else
		fail "$name" "$1 failed: $said"
	fi
}

finish() {
	printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
	test "$failed" -eq 0 && test $((passed + skipped)) -gt 0
	exit
}

over_kernel() {
	test "${PROFIL_TEST_OVER:-replay}" = kernel
}

# Says "bound" when the socket is there, and "ready" once READY=1 came through it.
notify_listen() { # PATH
	python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("bound", flush=True)
while b"READY=1" not in s.recv(512):
    pass
print("ready", flush=True)' "$1"
}

# Starts profild on $PROFIL_SOCKET, which it sets, and returns when it is ready: its pid is
# $daemon, its words go to $dir/log. Over replay it replays $dir/ticks, if there, else nothing.
daemon_start() { # ARGS...
	local line='' notify=$dir/notify listen began=$SECONDS

	export PROFIL_SOCKET=$dir/sock
	if ! over_kernel; then
		touch "$dir/ticks"
		set -- --replay "$dir/ticks" "$@"
	fi
	rm -f "$notify"
	exec {listen}< <(notify_listen "$notify")
	read -r -t 30 line <&"$listen"
	NOTIFY_SOCKET=$notify "${under[@]}" "$BUILD/profild" --socket "$PROFIL_SOCKET" "$@" 2>>"$dir/log" &
	daemon=$!
	until read -r -t 1 line <&"$listen" && test "$line" = ready; do
		kill -0 "$daemon" 2>/dev/null || break
		test $((SECONDS - began)) -lt "$READY_S" || break
	done
	if test "$line" != ready; then
		kill "$daemon" 2>/dev/null
		fail "profild $*" "ended, or not ready after $((SECONDS - began)) s: $(cat "$dir/log")"
		daemon=
		finish
	fi
	exec {listen}<&-
}

# Ends the daemon by SIGTERM: its exit status must be 0.
daemon_stop() {
	local status

	kill "$daemon"
	wait "$daemon"
	status=$?
	daemon=
	test "$status" -eq 0 || fail "profild ends with 0 on SIGTERM" "status $status: $(cat "$dir/log")"
}
