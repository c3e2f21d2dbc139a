#!/bin/bash
# lib.sh - what the bash tests share: verdicts, and a real profild for the time of a test
#
# A test sources this, gives verdicts by ok, fail, skip and check, and ends with finish. Its folder
# says where it runs: kernel/ only over the kernel (as root), alone/ so too, with nothing beside it,
# replay/ only over replay, both/ twice.
# What stands in $dir goes when the test ends, and so does the daemon.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

BUILD=${BUILD:-build}
passed=0 failed=0 skipped=0 unsure=0 daemon=
under=() # what profild is run by: valgrind ...
dir=$(mktemp -d "${PROFIL_TEST_DIR:-${TMPDIR:-/tmp}}/sh.XXXXXX") || exit 1
chmod 755 "$dir"
exec {never}<> <(:) # nothing is ever written to it
trap 'lib_end' EXIT
trap 'exit 130' INT TERM

# Ends what this file started. A script with a trap of its own calls it there.
lib_end() {
	test -z "$daemon" || kill "$daemon"
	test -z "${notified:-}" || kill "$notified" 2>/dev/null
	rm -rf "$dir"
}

ok() { # NAME
	passed=$((passed + 1))
	printf 'ok %s\n' "$1"
}

# In one line, of which run.sh keeps all.
fail() { # NAME WHY
	failed=$((failed + 1))
	printf 'FAIL %s: %s\n' "$1" "${2//$'\n'/ | }"
}

skip() { # NAME WHY
	skipped=$((skipped + 1))
	printf 'skip %s: %s\n' "$1" "$2"
}

# Neither passed nor failed: the samples cannot tell chance from a fault. run.sh counts it apart.
no_verdict() { # NAME WHY
	unsure=$((unsure + 1))
	printf 'no verdict %s: %s\n' "$1" "${2//$'\n'/ | }"
}

# A skip that is the machine's fault: run.sh fails for it.
lacks() { # NAME WHAT
	skip "$1" "no $2: sudo make deps"
}

# Ends a script that cannot do without TOOL, if that is not installed.
needs() { # TOOL NAME
	command -v "$1" >/dev/null && return
	lacks "$2" "$1"
	finish
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

# ok when the command prints WORDS and nothing else.
prints() { # NAME WORDS COMMAND...
	local name=$1 words=$2 said

	shift 2
	said=$("$@" 2>&1)
	if test "$said" = "$words"; then ok "$name"; else fail "$name" "not $words: $said"; fi
}

# Like prints; skipped when TOOL is not installed.
reads() { # TOOL NAME WORDS COMMAND...
	local tool=$1

	shift
	if command -v "$tool" >/dev/null; then prints "$@"; else lacks "$1" "$tool"; fi
}

# TOOL, which only "make nightly" installs, is to be used: the gate does not, so that it is the same everywhere.
has_by_night() { # TOOL NAME
	test -z "${PROFIL_TEST_BY_DAY:-}" && command -v "$1" >/dev/null && return
	skip "$2" "make nightly uses $1"
	return 1
}

# Like prints, by TOOL: the night runs the suite again.
reads_by_night() { # TOOL NAME WORDS COMMAND...
	has_by_night "$1" "$2" && prints "${@:2}"
}

# Runs COMMAND with the machine's network, which a suite with a daemon does not have. As root.
online() { # COMMAND...
	nsenter --net="${PROFIL_TEST_ONLINE:-/proc/self/ns/net}" "$@"
}

# Counts the verdicts that a program prints as the script's own.
tells() { # COMMAND...
	local word rest n=0

	while read -r word rest; do
		n=$((n + 1))
		case $word in
		ok) ok "$rest" ;;
		FAIL) fail "${rest%%: *}" "${rest#*: }" ;;
		skip) skip "${rest%%: *}" "${rest#*: }" ;;
		no)
			rest=${rest#verdict }
			no_verdict "${rest%%: *}" "${rest#*: }"
			;;
		*) fail "$1" "$word $rest" ;;
		esac
	done < <("$@" 2>&1 || echo "FAIL $1: it ended with status $?")
	test $n -gt 0 || fail "$1" "it told of nothing"
}

finish() {
	printf '%d passed, %d failed, %d skipped' "$passed" "$failed" "$skipped"
	test "$unsure" -eq 0 || printf ', %d without a verdict' "$unsure"
	echo
	test "$failed" -eq 0 && test $((passed + skipped + unsure)) -gt 0
	exit
}

# Whether a process runs: a zombie, which in many containers is never reaped, does not.
alive() { # PID
	local stat

	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null && [[ ${stat##*) } != [ZX]* ]]
}

# Waits until the command succeeds, and pauses between two tries. It has no limit of its own: run.sh notices that no
# test ends. When process PID has ended, the next try is the last; a failure shows what that said.
await() { # PID COMMAND...
	local ended=''

	until "${@:2}" >"$dir/await" 2>&1; do
		if test "$ended"; then
			cat "$dir/await"
			return 1
		fi
		alive "$1" || ended=1
		read -r -t 0.05 -u "$never"
	done
	return 0
}

lists() { # REGEX
	"$BUILD/profilctl" list | grep -E -- "$1"
}

has_status_line() { # REGEX
	"$BUILD/profilctl" status >"$dir/status" 2>&1
	grep -E -- "$1" "$dir/status" || { cat "$dir/status"; return 1; }
}

# Waits until profilctl lists a profile that matches REGEX. Fails if process PID ends first.
await_listed() { # REGEX PID
	await "$2" lists "$1"
}

# Waits until a line of profilctl's status matches REGEX: the daemon removes the profile of a client that has ended
# only when it hears of that.
await_status() { # REGEX
	await "$daemon" has_status_line "$1"
}

executes() { # PID FILE
	test "/proc/$1/exe" -ef "$2"
}

# The CPU time of a process, in clock ticks.
cpu_ticks_of() { # PID
	awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"
}

has_used() { # PID CLOCK_TICKS
	test "$(cpu_ticks_of "$1")" -ge "$2"
}

# Waits until process PID executes FILE and has used CPU time by it.
await_busy() { # PID FILE
	await "$1" executes "$@" && await "$1" has_used "$1" $(($(cpu_ticks_of "$1") + 2))
}

has_samples() { # N
	test "$("$BUILD/profilctl" list --json | jq '[.profiles[].total] | add // 0')" -ge "$1"
}

# Runs "profilctl attach" until it has N samples, however long that takes. It is the daemon's only client.
attach_until() { # N ARG...
	local pid

	"$BUILD/profilctl" attach "${@:2}" &
	pid=$!
	await "$pid" has_samples "$1" >/dev/null
	kill -INT "$pid" 2>/dev/null
	wait "$pid"
}

# Writes a profile of 70 samples in hot and 30 in cold, of a program that is not there.
sample_profile() { # FILE
	cat >"$1" <<-'END'
		{"schema":"profil/1","command":"spin","pid":1,"started":1700000000,"command_status":0,
		"tick_ns":1000000,"duration_ns":1,"cpu_ns":0,
		"samples":{"total":100,"binned":100,"unmatched":0,"lost":0},
		"functions":[
		{"name":"hot","object":"/nonexistent/spin","samples":70,"offset":4096,"size":48,"named":true},
		{"name":"cold","object":"/nonexistent/spin","samples":30,"offset":8192,"size":48,"named":true}],
		"objects":[{"path":"/nonexistent/spin","build_id":"","vaddr":0,"program":true}],
		"places":[[0,4100,1,70],[0,8200,1,30]]}
	END
}

over_kernel() {
	test "${PROFIL_TEST_OVER:-replay}" = kernel
}

# Starts a listener at the socket $dir/NAME, whose pid is $notified. READY=1 that comes there makes the file
# $dir/NAME.ready; the listener ends then.
notify_listen() { # NAME
	rm -f "$dir/$1" "$dir/$1.ready"
	python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while b"READY=1" not in s.recv(512):
    pass
open(sys.argv[1] + ".ready", "w")' "$dir/$1" &
	notified=$!
	await "$notified" test -S "$dir/$1"
}

# Prints a port on which nothing listens. run.sh gives each suite a network namespace of its own.
free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Starts profild on $PROFIL_SOCKET, which it sets, and returns when it is ready: its pid is
# $daemon, its words go to $dir/log. Over replay it replays $dir/ticks, if there, else nothing.
daemon_start() { # ARGS...
	export PROFIL_SOCKET=$dir/sock
	if ! over_kernel; then
		touch "$dir/ticks"
		set -- --replay "$dir/ticks" "$@"
	fi
	notify_listen notify
	NOTIFY_SOCKET=$dir/notify "${under[@]}" "$BUILD/profild" --socket "$PROFIL_SOCKET" "$@" 2>>"$dir/log" &
	daemon=$!
	if ! await "$daemon" test -e "$dir/notify.ready"; then
		kill "$daemon" 2>/dev/null
		fail "profild $*" "ended before it was ready: $(cat "$dir/log")"
		daemon=
		finish
	fi
	notified=
}

# Prepares $shifted: what a program is run by that is to see other clocks than there are.
# shellcheck disable=SC2034 # for the script that sources this
shifted=()
shifter_start() {
	local preload=${PROFIL_PRELOAD:-$PWD/$BUILD/libprofil.so.1}

	truncate -s 16 "$dir/shift"
	# shellcheck disable=SC2034
	shifted=(env "LD_PRELOAD=${preload%libprofil.so.1}tests/programs/timeshift.so" "TIMESHIFT=$dir/shift")
}

# Sets how far the clocks are ahead, from now on.
shift_clocks() { # REALTIME_S BOOTTIME_S
	python3 -c 'import struct, sys; open(sys.argv[1], "r+b").write(struct.pack("qq", *map(int, sys.argv[2:])))' "$dir/shift" "$@"
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
