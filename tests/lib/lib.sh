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
READY_S=120 # far more than a daemon under valgrind on a busy machine takes
passed=0 failed=0 skipped=0 unsure=0 daemon=
under=() # what profild is run by: valgrind ...
dir=$(mktemp -d "${PROFIL_TEST_DIR:-${TMPDIR:-/tmp}}/sh.XXXXXX") || exit 1
chmod 755 "$dir"
trap 'test -z "$daemon" || kill "$daemon"; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

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

# Whether numbers are judged that the scheduler chooses: by the gate they are not.
by_night() {
	test -z "${PROFIL_TEST_GATE:-}"
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

# Like reads, of a tool that only "make nightly" installs: its run repeats the suite.
reads_by_night() { # TOOL NAME WORDS COMMAND...
	local tool=$1

	shift
	if command -v "$tool" >/dev/null; then prints "$@"; else skip "$1" "no $tool: make nightly has it"; fi
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
	done < <(timeout "${TELLS_S:-150}" "$@" 2>&1 || echo "FAIL $1: it ended with status $?")
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

# Waits until profilctl lists a profile that matches REGEX. Fails if process PID ends first, or after a minute.
await_listed() { # REGEX PID
	local end=$((SECONDS + 60))

	until "$BUILD/profilctl" list | grep -qE -- "$1"; do
		alive "$2" && test "$SECONDS" -lt "$end" || return
	done
}

# Waits until a line of profilctl's status matches REGEX. Prints the status and fails after a minute: the
# daemon removes the profile of a client that has ended only when it hears of that.
await_status() { # REGEX
	local end=$((SECONDS + 60))

	until "$BUILD/profilctl" status | grep -qE -- "$1"; do
		test "$SECONDS" -lt "$end" || {
			"$BUILD/profilctl" status
			return 1
		}
	done
}

# Waits until process PID executes FILE and has used some CPU time by it.
await_busy() { # PID FILE
	local user system least=''

	until test "/proc/$1/exe" -ef "$2"; do alive "$1" || return; done
	while alive "$1"; do
		read -r user system < <(awk '{ print $14, $15 }' "/proc/$1/stat")
		test "$((user + system))" -le "${least:=$((user + system + 1))}" || return 0
	done
	return 1
}

# Runs "profilctl attach" until it has N samples, however long that takes. It is the daemon's only client.
attach_until() { # N ARG...
	local pid

	"$BUILD/profilctl" attach "${@:2}" &
	pid=$!
	until test "$("$BUILD/profilctl" list --json | jq '[.profiles[].total] | add // 0')" -ge "$1"; do
		alive "$pid" || break
	done
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

# Prints a port on which nothing listens.
free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
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
		alive "$daemon" || break
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
