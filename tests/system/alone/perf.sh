#!/bin/bash
# perf.sh - profiles of real programs agree with perf's of the same run, and with their CPU time
#
# PROFIL_TEST_PERF_S CPU seconds of each give both profilers some 10,000 samples. Their rates differ:
# at one rate the two timers keep their distance for the whole run, and where it is the time that the
# first one's handler takes, the second one samples only what follows an interrupt.
# shellcheck source=tests/system/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

seconds=${PROFIL_TEST_PERF_S:-5}
rate=1873
perf_rate=1999
programs=$BUILD/tests/programs
judge=tests/system/alone/perf.py

if ! command -v perf >/dev/null; then
	skip "perf's profile of the same run agrees" "no perf: sudo make deps"
	finish
fi

adds_up() { # JSON
	jq -e '.samples.total == .samples.binned + .samples.unmatched + .samples.lost and
		([.functions[].samples] | add) == .samples.binned' "$1"
}

# Compares $dir/NAME.kept, $dir/NAME.perf and $dir/NAME.cost. Samples in the kernel count in the user
# function that entered it: of kernel symbols that share an address, perf may choose another name.
compare() { # NAME COMM
	local json=$dir/$1.json perf=$dir/$1.perf cpu_ns task_ns

	"$BUILD/profilctl" report --fold-kernel -f json "$dir/$1.kept" >"$json"
	read -r cpu_ns task_ns <"$dir/$1.cost"
	check "the samples of $1 account for its CPU time" "$judge" time "$json" "$cpu_ns" "$task_ns"
	check "the samples of $1 add up, by outcome and by function" adds_up "$json"
	check "perf report names the same hottest function of $1" "$judge" first "$json" "$perf" "$2"
	check "the ten hottest functions of $1 and their shares are perf's" "$judge" ten "$json" "$perf" "$2"
	check "the shares of the functions of $1 are perf's" "$judge" shares "$json" "$perf" "$2"
}

# Both profilers record from the command's first instruction to its end.
record() { # NAME COMM COMMAND...
	local name=$1 comm=$2

	shift 2
	if perf record -q -F "$perf_rate" -e cpu-clock -g -o "$dir/$name.perf" -- \
		"$BUILD/profilctl" record -F "$rate" -o "$dir/$name.kept" -- \
		"$programs/cost" "$dir/$name.cost" "$@" >"$dir/out" 2>&1; then
		compare "$name" "$comm"
	else
		fail "perf and profilctl record $name" "$*: $(tail -n 5 "$dir/out")"
	fi
}

# Both profilers attach to a process that waits for a line, so both see all that it does afterwards.
attach() { # NAME COMM COMMAND...
	local name=$1 comm=$2 cost pid perf profilctl ack=

	shift 2
	mkfifo "$dir/go" "$dir/ctl" "$dir/ack"
	"$programs/cost" "$dir/$name.cost" "$@" <"$dir/go" &
	cost=$!
	exec {go}>"$dir/go"
	until pid=$(pgrep -P "$cost" -x "$comm"); do
		alive "$cost" || break
	done
	perf record -q -F "$perf_rate" -e cpu-clock -g -D -1 --control "fifo:$dir/ctl,$dir/ack" \
		-o "$dir/$name.perf" -p "$pid" >"$dir/out" 2>&1 &
	perf=$!
	echo enable >"$dir/ctl"
	read -r -t 30 ack <"$dir/ack"
	"$BUILD/profilctl" attach -F "$rate" -o "$dir/$name.kept" "$pid" >>"$dir/out" 2>&1 &
	profilctl=$!
	await_listed "^ *$pid .* attachment " "$profilctl"
	echo >&"$go"
	exec {go}>&-
	if wait "$cost" && wait "$profilctl" && wait "$perf" && test "$ack"; then
		compare "$name" "$comm"
	else
		fail "perf and profilctl attach to $name" "$*: $(tail -n 5 "$dir/out")"
	fi
}

# Each worker ends after the same CPU time. The first process only starts them.
# shellcheck disable=SC2016 # jq's variable
workers() {
	jq -e '.samples.total as $n | [.groups[] | select(.command == "node" and .samples > $n / 10).samples / $n] |
		length == 4 and all(.[]; . > 0.21 and . < 0.27)' "$dir/cluster.json" ||
		{ jq -c .groups "$dir/cluster.json"; false; }
}

# Prints BYTES of source text that every build machine has, repeated as often as needed.
text() { # BYTES
	find /usr/include /usr/share/perl /usr/lib/python3* -type f -readable -print0 2>/dev/null |
		sort -z | xargs -0 cat 2>/dev/null >"$dir/once"
	while cat "$dir/once"; do :; done 2>/dev/null | head -c "$1"
}

daemon_start
text $((seconds * 30000000)) >"$dir/text"
record gzip gzip gzip -c "$dir/text"
# Blocks of 64 bytes: larger ones make a constant loop of some 10 us, whose small parts fall in step with
# sampling periods of 500 us, for one profiler more than for the other.
record openssl openssl openssl speed -seconds "$seconds" -bytes 64 sha256
record python3 python3 /usr/bin/python3 -c '
import sys, time
ns = float(sys.argv[1]) * 1e9
def work():
    x = 1
    while time.process_time_ns() < ns:
        for i in range(100000):
            if x is None or x is i:
                x = i
work()' "$seconds"
record threads threads "$programs/threads" "$seconds"
if ${CXX:-g++} -O2 -g -o "$dir/words" tests/system/programs/words.cc; then
	record words words "$dir/words" "$seconds" "$dir/text"
else
	fail "the C++ program compiles" "it cannot be compiled"
fi
if ! command -v go >/dev/null; then
	skip "perf's profile of a Go program agrees" "no go: sudo make deps"
elif HOME=$dir GOFLAGS=-mod=mod go build -o "$dir/gowork" tests/system/programs/work.go; then
	record go gowork "$dir/gowork" work "$seconds"
	"$BUILD/profilctl" record -F "$rate" -o "$dir/kept" -- "$dir/gowork" work 0.5
	check "report --by line finds source lines of a Go program" sh -c "$BUILD/profilctl report --by line \
		'$dir/kept' | grep -Eq '[a-z0-9_]+[.](go|s):[1-9][0-9]* .* gowork$'"
	record server gowork "$dir/gowork" serve "$seconds"
else
	fail "the Go program compiles" "it cannot be compiled"
fi
if ! command -v node >/dev/null; then
	skip "perf's profile of many processes agrees" "no node: sudo make deps"
else
	record cluster node,MainThread,libuv-worker node tests/system/programs/cluster.js $((2 * seconds))
	check "each worker process has a quarter of the samples" workers
fi
attach attach threads "$programs/threads" "$seconds"
daemon_stop
finish
