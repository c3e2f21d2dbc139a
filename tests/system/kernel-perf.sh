#!/bin/bash
# kernel-perf.sh - real programs: the profile is perf's of the same run, and adds up to its CPU time
#
# PROFIL_TEST_PERF_S CPU seconds of each at PROFIL_TEST_PERF_HZ give both profilers some 10,000 samples.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

seconds=${PROFIL_TEST_PERF_S:-5}
rate=${PROFIL_TEST_PERF_HZ:-1999}
programs=$BUILD/tests/programs
judge=tests/system/kernel-perf.py

if ! command -v perf >/dev/null; then
	skip "perf finds the same" "no perf: sudo make deps"
	finish
fi

adds_up() { # JSON
	jq -e '.samples.total == .samples.binned + .samples.unmatched + .samples.lost and
		([.functions[].samples] | add) == .samples.binned' "$1"
}

# Gives the verdicts on $dir/NAME.json, $dir/NAME.perf and $dir/NAME.cost.
compare() { # NAME COMM
	local json=$dir/$1.json perf=$dir/$1.perf cpu_ns task_ns

	read -r cpu_ns task_ns <"$dir/$1.cost"
	check "$1: the samples are its CPU time" "$judge" time "$json" "$cpu_ns" "$task_ns"
	check "$1: total = binned + unmatched + lost, and the functions add up" adds_up "$json"
	check "$1: perf report names the same function first" "$judge" first "$json" "$perf" "$2"
	check "$1: its ten hottest functions are perf's, and their shares" "$judge" ten "$json" "$perf" "$2"
	check "$1: the shares of its functions are perf's" "$judge" shares "$json" "$perf" "$2"
}

# Both profilers from the command's first instruction to its end.
record() { # NAME COMM COMMAND...
	local name=$1 comm=$2

	shift 2
	if perf record -q -F "$rate" -e cpu-clock -g -o "$dir/$name.perf" -- \
		"$BUILD/profilctl" record -F "$rate" -f json -o "$dir/$name.json" -- \
		"$programs/cost" "$dir/$name.cost" "$@" >"$dir/out" 2>&1; then
		compare "$name" "$comm"
	else
		fail "$name: recorded" "$*: $(tail -n 5 "$dir/out")"
	fi
}

# A process that runs already: it waits for a line, so both see all that it does after that.
attach() { # NAME COMM COMMAND...
	local name=$1 comm=$2 cost pid perf profilctl ack=

	shift 2
	mkfifo "$dir/go" "$dir/ctl" "$dir/ack"
	"$programs/cost" "$dir/$name.cost" "$@" <"$dir/go" &
	cost=$!
	exec {go}>"$dir/go"
	until pid=$(pgrep -P "$cost" -x "$comm"); do
		kill -0 "$cost" || break
	done
	perf record -q -F "$rate" -e cpu-clock -g -D -1 --control "fifo:$dir/ctl,$dir/ack" \
		-o "$dir/$name.perf" -p "$pid" >"$dir/out" 2>&1 &
	perf=$!
	echo enable >"$dir/ctl"
	read -r -t 30 ack <"$dir/ack"
	"$BUILD/profilctl" attach -F "$rate" -f json -o "$dir/$name.json" "$pid" >>"$dir/out" 2>&1 &
	profilctl=$!
	until "$BUILD/profilctl" list | grep -q "^ *$pid .* reader "; do
		kill -0 "$profilctl" || break
	done
	echo >&"$go"
	exec {go}>&-
	if wait "$cost" && wait "$profilctl" && wait "$perf" && test "$ack"; then
		compare "$name" "$comm"
	else
		fail "$name: attached" "$*: $(tail -n 5 "$dir/out")"
	fi
}

# All the text that every machine which can build this has, over and over.
text() { # BYTES
	find /usr/include /usr/share/perl /usr/lib/python3* -type f -readable -print0 2>/dev/null |
		sort -z | xargs -0 cat 2>/dev/null >"$dir/once"
	while cat "$dir/once"; do :; done 2>/dev/null | head -c "$1"
}

daemon_start
text $((seconds * 30000000)) >"$dir/text"
record gzip gzip gzip -c "$dir/text"
# Larger blocks make a loop of some 10 us, always the same: its small parts are then in step with
# periods of 500 us, for one profiler more than for the other.
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
	fail "words: in C++" "it cannot be compiled"
fi
if ! command -v go >/dev/null; then
	skip "work in Go, and a threaded server under load" "no go: sudo make deps"
elif HOME=$dir GOFLAGS=-mod=mod go build -o "$dir/gowork" tests/system/programs/work.go; then
	record go gowork "$dir/gowork" work "$seconds"
	"$BUILD/profilctl" record -F "$rate" -o "$dir/kept" -- "$dir/gowork" work 0.5
	check "go: a profile that was kept finds the lines of the file" sh -c "$BUILD/profilctl report --by line \
		'$dir/kept' | grep -Eq '[a-z0-9_]+[.](go|s):[1-9][0-9]* .* gowork$'"
	record server gowork "$dir/gowork" serve "$seconds"
else
	fail "work in Go" "it cannot be compiled"
fi
attach attach threads "$programs/threads" "$seconds"
daemon_stop
finish
