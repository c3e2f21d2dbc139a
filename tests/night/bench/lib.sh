#!/bin/bash
# lib.sh - what the parts of the benchmark share: a number put down, a profild, and every peer
#
# A peer is a profiler of others. The work starts stopped, the peer takes hold of it, and then it
# goes on: watched.
# shellcheck disable=SC2034 # parts.sh and run.sh use what is set here
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../../.." || exit 1

BUILD=${BUILD:-build}
here=$PWD
work=$here/$BUILD/tests/night/bench/work
floor=$here/$BUILD/tests/night/bench/floor
passes=$here/$BUILD/tests/night/bench/passes
ctl=$here/$BUILD/profilctl
library=$here/$BUILD/libprofil.so.1
dir=$(mktemp -d "${TMPDIR:-/tmp}/profil-bench.XXXXXX") || exit 1
numbers=$dir/numbers
daemons=()
declare -A daemon_of
round=0
peer_pid='' peer_in='' times_pid=''
trap 'stop_all; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

have() { command -v "$1" >/dev/null 2>&1; }

number() { # PART SUBJECT METRIC VALUE
	printf '%s\t%s\t%s\t%s\n' "$@" >>"$numbers"
}

# Puts down what a program prints, one METRIC VALUE in a line.
numbers_of() { # PART SUBJECT
	local metric value

	while read -r metric value; do
		test "$metric" = ready || number "$1" "$2" "$metric" "$value"
	done
}

until_true() { # COMMAND...
	local tries=0

	until "$@" 2>/dev/null; do
		tries=$((tries + 1))
		test $tries -lt 1000 || { echo "bench: waited in vain for: $*" >&2; return 1; }
		sleep 0.01
	done
}

# --- our own daemon -------------------------------------------------------------------------------

is_socket() { test -S "$1"; }

# Starts a profild on $dir/NAME.sock: its pid is $daemon. Peers and work find it by use_daemon.
daemon_start() { # NAME ARGS...
	local name=$1

	shift
	"$BUILD/profild" --socket "$dir/$name.sock" "$@" 2>>"$dir/$name.log" &
	daemon=$!
	daemons+=("$daemon")
	daemon_of[$name]=$daemon
	export PROFIL_SOCKET=$dir/$name.sock
	if ! until_true is_socket "$PROFIL_SOCKET" || ! "$ctl" status >/dev/null; then
		cat "$dir/$name.log" >&2
		exit 1
	fi
}

use_daemon() { # NAME
	export PROFIL_SOCKET=$dir/$1.sock
}

# Its clocks stay for a moment after their last use: what is measured next shall not see them.
clocks_gone() { # NAME
	until_true holds_nothing "${daemon_of[$1]}"
}

# An iterator's link is attached to nothing.
holds_nothing() { # PID
	! find "/proc/$1/fd" -lname 'anon_inode:*perf_event*' | grep -q . &&
		! grep -qsE '^link_type:[[:space:]]*(perf_event|raw_tracepoint|tracing)' "/proc/$1/fdinfo/"*
}

stop_all() {
	local pid

	test -z "$peer_pid" || kill "$peer_pid" 2>/dev/null
	test -z "$times_pid" || kill "$times_pid" 2>/dev/null
	for pid in "${daemons[@]}"; do
		kill "$pid" 2>/dev/null && wait "$pid"
	done
	daemons=()
}

# What the kernel counted of daemon PID's program NAME: runs and nanoseconds.
program_runs() { # PID NAME
	local id

	cat "/proc/$1/fdinfo/"* 2>/dev/null | awk '/^prog_id:/ && !seen[$2]++ { print $2 }' |
		while read -r id; do "$BPFTOOL" -j prog show id "$id" 2>/dev/null; done |
		jq -rs --arg name "$2" '[.[] | select(.name == $name)] |
			"\(map(.run_cnt // 0) | add // 0) \(map(.run_time_ns // 0) | add // 0)"'
}

# --- peers ----------------------------------------------------------------------------------------

state_is() { # PID STATE
	local stat

	stat=$(<"/proc/$1/stat") || return 1
	stat=${stat##*) }
	test "${stat%% *}" = "$2"
}

has_events() { # PID
	find "/proc/$1/fd" -lname 'anon_inode:*perf_event*' 2>/dev/null | grep -q .
}

listed() { # PID
	"$ctl" list 2>/dev/null | grep -qw "$1"
}

# perf says when it counts.
start_perf() { # ARGS...
	rm -f "$dir/ctl" "$dir/ack"
	mkfifo "$dir/ctl" "$dir/ack"
	perf record -q -D -1 --control "fifo:$dir/ctl,$dir/ack" -o "$dir/perf.data" "$@" \
		>/dev/null 2>&1 &
	peer_pid=$!
	echo enable >"$dir/ctl"
	read -r _ <"$dir/ack"
}

# What can be started without a process.
peers_present() {
	echo none profil floor
	have perf && echo perf-p perf-a
	have bpftrace && echo bpftrace
}

# Takes hold of process PID, or of the machine. "profil" is an attach through our own daemon.
peer_start() { # PEER HZ PID
	case $1 in
	none) peer_pid='' ;;
	profil)
		"$ctl" attach -F "$2" -o "$dir/profil.out" "$3" >/dev/null 2>&1 &
		peer_pid=$!
		until_true listed "$3"
		;;
	floor)
		rm -f "$dir/floor.in"
		mkfifo "$dir/floor.in"
		"$floor" "$2" <"$dir/floor.in" >"$dir/floor.out" &
		peer_pid=$!
		exec {peer_in}>"$dir/floor.in"
		until_true grep -q ready "$dir/floor.out"
		;;
	perf-p) start_perf -F "$2" -p "$3" ;;
	perf-a) start_perf -F "$2" -a ;;
	bpftrace)
		bpftrace -e "profile:hz:$2 /pid == $3/ { @[reg(\"ip\")] = count(); }" \
			>"$dir/bpftrace.out" 2>&1 &
		peer_pid=$!
		until_true has_events "$peer_pid"
		;;
	esac
}

# bpftrace counts before it listens to signals: the first one may be lost on it.
asked_and_gone() { # PID
	! kill -INT "$1"
}

peer_stop() { # PEER
	case $1 in
	none) return ;;
	floor) exec {peer_in}>&- ;;
	bpftrace) until_true asked_and_gone "$peer_pid" ;;
	*) kill -INT "$peer_pid" 2>/dev/null ;;
	esac
	wait "$peer_pid" 2>/dev/null
	peer_pid=''
}

# Lets the peer watch the work: the work's own numbers are put down.
watched() { # PART SUBJECT PEER HZ KIND AMOUNT
	local pid

	BENCH_STOP=1 "$work" "$5" "$6" >"$dir/work.out" &
	pid=$!
	until_true state_is "$pid" T
	peer_start "$3" "$4" "$pid"
	kill -CONT "$pid"
	wait "$pid"
	peer_stop "$3"
	numbers_of "$1" "$2" <"$dir/work.out"
}
