#!/bin/bash
# perf.sh - profiles of real programs agree with perf's of the same run, and with their CPU time
#
# PROFIL_TEST_PERF_S CPU seconds of each give both profilers some 20,000 samples. Their rates differ:
# at one rate the two timers keep their distance for the whole run, and where it is the time that the
# first one's handler takes, the second one samples only what follows an interrupt. perf knows no functions of
# interpreters.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
# shellcheck source=tests/lib/database.sh
. tests/lib/database.sh

seconds=${PROFIL_TEST_PERF_S:-10}
rate=1873
perf_rate=1999
perf_second_rate=1733
programs=$BUILD/tests/programs
judge=tests/night/kernel/perf.py
room=16M # for perf's samples of several seconds: it loses none, and no start of a process, while it has to wait for a CPU

needs perf "perf's profile of the same run agrees"

# The program that is compared, in up to three looks at runs of its own, of 1, 4 and 16 times the samples. A number is ok
# as soon as a look shows that it is perf's, red when three looks are beyond on the same side; else it has no verdict.
factor=1 turn=0 broken=''
declare -A held=() said=()

looks() { # COMMAND...
	local what

	held=() said=() broken=''
	rm -f "$dir"/beyond.*
	for turn in 1 2 3; do
		factor=$((4 ** (turn - 1)))
		if test "$turn" -eq 3 && test -z "${loaded:-}" && ! python3 tests/lib/verdict.py quiet "${PROFIL_TEST_QUIET_S:-600}"; then
			turn=2
			break
		fi
		"$@"
		test -z "$broken" || return
		test ${#said[@]} -gt ${#held[@]} || break
	done
	for what in "${!said[@]}"; do
		if test "${held[$what]:-}"; then
			continue
		elif test "$turn" -eq 3 && test -s "$dir/beyond.${what//[ \/]/_}"; then
			fail "$what" "${said[$what]}"
		else
			no_verdict "$what" "${said[$what]}"
		fi
	done
	factor=1
}

# Compares a number at this look, until it is ok.
number() { # NAME COMMAND...
	local now beyond=$dir/beyond.${1//[ \/]/_}

	test -z "${held[$1]:-}" || return
	if now=$("${@:2}" 2>&1); then
		ok "$1"
		held[$1]=1
	fi
	said[$1]+="look $turn: $now; "
	grep '^beyond ' <<<"$now" | sort -u >"$beyond.now"
	test "$turn" -eq 1 || { comm -12 "$beyond" "$beyond.now" >"$beyond.both" && mv "$beyond.both" "$beyond.now"; }
	mv "$beyond.now" "$beyond"
}

fact() { # NAME COMMAND...
	test "$turn" -ne 1 || check "$@"
}

adds_up() { # JSON
	jq -e '.samples.total == .samples.binned + .samples.unmatched + .samples.lost and
		([.functions[].samples] | add) == .samples.binned' "$1"
}

# Compares $dir/NAME.kept and $dir/NAME.perf. Samples in the kernel count in the user function that
# entered it: of kernel symbols that share an address, perf may choose another name.
compare_functions() { # NAME COMM
	local json=$dir/$1.json perf=$dir/$1.perf

	"$BUILD/profilctl" report --fold-kernel -f json "$dir/$1.kept" >"$json"
	"$BUILD/profilctl" report -f json "$dir/$1.kept" >"$dir/$1.unfolded"
	fact "the samples of $1 add up, by outcome and by function" adds_up "$json"
	number "perf report names the same hottest function of $1" "$judge" first "$dir/$1.unfolded" "$perf" "$2"
	number "the ten hottest functions of $1 and their shares are perf's" "$judge" ten "$json" "$perf" "$2"
	case $1 in
	files | database | web-server)
		number "the share of samples of $1 in the kernel, and its five hottest functions there, are perf's" \
			"$judge" kernel "$dir/$1.unfolded" "$perf" "$2"
		;;
	esac
	test "$1" != cluster || fact "each worker process has a quarter of the samples" workers
	case $1 in
	cluster | database | web-server | build)
		fact "no sample of $1 is without an object, or in a function by guess" nothing_guessed "$dir/$1.unfolded" 0.5
		;;
	browser) # Debian's chromium has no symbols, and unwind information for few of its functions
		fact "no sample of $1 is without an object, or in a function by guess" nothing_guessed "$dir/$1.unfolded" 90
		;;
	esac
}

# A function without a symbol has the limits that its unwind information gives it. PERCENT of the samples may be in
# code that has none.
nothing_guessed() { # JSON PERCENT
	if ! jq -e '.samples.unmatched + .samples.lost == 0' "$1"; then
		jq -c .samples "$1"
		return 1
	fi
	"$judge" guesses "$@"
}

# The same, and $dir/NAME.cost.
compare() { # NAME COMM
	local cpu_ns task_ns

	compare_functions "$@"
	read -r cpu_ns task_ns <"$dir/$1.cost"
	number "the samples of $1 account for its CPU time" "$judge" time "$dir/$1.json" "$cpu_ns" "$task_ns"
}

# Both profilers record from the command's first instruction to its end. $compare can be compare_functions.
# perf samples the whole machine: an event of a process has no sample of a child's first 500 us, because the
# child's event begins a whole period anew, and too many where threads begin to run: where its timer expired
# while it was off, it expires 10 us later.
# shellcheck disable=SC2016 # another shell's
record() { # NAME COMMAND...
	local name=$1 times=()

	shift
	test "$factor" -eq 1 || times=(sh -c 'n=$0; while test $n -gt 0; do "$@" || exit; n=$((n - 1)); done' "$factor")
	if perf record -q --no-bpf-event -m "$room" -F "$perf_rate" -e cpu-clock -g -a -o "$dir/$name.perf" -- \
		"$BUILD/profilctl" record --native -F "$rate" -o "$dir/$name.kept" -- \
		"$programs/cost" "$dir/$name.cost" "${times[@]}" "$@" >"$dir/out" 2>&1; then
		"${compare:-compare}" "$name" cost
	else
		broken=1
		fail "perf and profilctl record $name" "$*: $(tail -n 5 "$dir/out")"
	fi
}

# perf's pipes. They are open for both directions, so that nothing waits for a perf that has ended.
open_control() {
	rm -f "$dir/ctl" "$dir/ack"
	mkfifo "$dir/ctl" "$dir/ack"
	exec {ctl}<>"$dir/ctl" {acks}<>"$dir/ack"
}

close_control() {
	exec {ctl}>&- {acks}>&-
}

# Both profilers attach to a process that waits for a line, so both see all that it does afterwards.
attach() { # NAME COMM COMMAND...
	local name=$1 comm=$2 cost pid perf profilctl ack=

	shift 2
	open_control
	mkfifo "$dir/go"
	"$programs/cost" "$dir/$name.cost" "$@" <"$dir/go" &
	cost=$!
	exec {go}>"$dir/go"
	until pid=$(pgrep -P "$cost" -x "$comm"); do
		alive "$cost" || break
	done
	perf record -q --no-bpf-event -m "$room" -F "$perf_rate" -e cpu-clock -g -a -D -1 --control "fifo:$dir/ctl,$dir/ack" \
		-o "$dir/$name.perf" >"$dir/out" 2>&1 &
	perf=$!
	echo enable >&"$ctl"
	read -r -t 120 -u "$acks" ack
	"$BUILD/profilctl" attach --native -F "$rate" -o "$dir/$name.kept" "$pid" >>"$dir/out" 2>&1 &
	profilctl=$!
	await_listed "^ *$pid .* attachment " "$profilctl"
	echo >&"$go"
	exec {go}>&-
	rm "$dir/go"
	if wait "$cost" && wait "$profilctl" && test "$ack" && echo stop >&"$ctl" && wait "$perf"; then
		compare "$name" "$comm"
	else
		broken=1
		fail "perf and profilctl attach to $name" "$*: $(tail -n 5 "$dir/out")"
		kill "$perf" 2>/dev/null
	fi
	close_control
}

# Both profilers watch all processes of COMM for the same seconds, perf among the whole machine and at two
# rates: servers and their clients wait for each other, so that their samples depend on each other, and how
# much the two differ tells by how much. Where timers fall in step with the load, as has happened with the web
# server, perf's two events contradict each other, and nothing can be compared with them: both watch again, three
# times at most.
watch() { # NAME COMM
	local name=$1 comm=$2 again

	for again in 1 2 3; do
		watch_once "$name" "$comm" || return
		"$BUILD/profilctl" report --fold-kernel -f json "$dir/$name.kept" >"$dir/$name.json"
		if "$judge" agree "$dir/$name.json" "$dir/$name.perf" "$comm" >"$dir/out" 2>&1; then
			break
		fi
		echo "$name, turn $again: $(tail -n 1 "$dir/out")"
	done
	compare_functions "$name" "$comm"
}

watch_once() { # NAME COMM
	local name=$1 comm=$2 perf profilctl ack='' is_done=

	rm -f "$dir/$name.perf"*
	open_control
	perf record -q --no-bpf-event -m "$room" -e "cpu-clock/freq=$perf_rate/,cpu-clock/freq=$perf_second_rate/" -g -a -D -1 \
		--control "fifo:$dir/ctl,$dir/ack" -o "$dir/$name.perf" >"$dir/out" 2>&1 &
	perf=$!
	"$BUILD/profilctl" attach --native --comm "$comm" -F "$rate" -d $((seconds * factor)) -o "$dir/$name.kept" >>"$dir/out" 2>&1 &
	profilctl=$!
	await_listed " attachment " "$profilctl"
	echo enable >&"$ctl"
	read -r -t 120 -u "$acks" ack
	if wait "$profilctl" && test "$ack" && echo stop >&"$ctl" && wait "$perf"; then
		is_done=1
	else
		broken=1
		fail "perf and profilctl watch $name" "$(tail -n 5 "$dir/out")"
		kill "$perf" 2>/dev/null
	fi
	close_control
	test "$is_done"
}

database() {
	database_start "perf's profile of a database agrees" || return
	database_load 600
	loaded=1 looks watch database postgres
	kill "$pgbench" "$postgres"
	wait "$pgbench" "$postgres" 2>/dev/null
}

# Three loads of different pages and numbers of connections: a single one runs in waves of some 200 us, with
# which timers of some 500 us fall in step: the shares of two perfs of one run differed by 14 points.
web_server() {
	local nginx ab=() load port

	if ! command -v nginx >/dev/null || ! command -v ab >/dev/null; then
		lacks "perf's profile of a web server agrees" "nginx or ab"
		return
	fi
	port=$(free_port)
	mkdir "$dir/www"
	for load in 300 4000 30000; do
		head -c "$load" "$dir/text" >"$dir/www/$load.html"
	done
	cat >"$dir/nginx.conf" <<-END
		daemon off;
		user root;
		worker_processes 2;
		pid $dir/nginx.pid;
		error_log $dir/nginx.log;
		events {}
		http {
			access_log $dir/access.log;
			gzip on;
			server {
				listen 127.0.0.1:$port;
				root $dir/www;
			}
		}
	END
	nginx -c "$dir/nginx.conf" >"$dir/said" 2>&1 &
	nginx=$!
	until ab -n 10 "http://127.0.0.1:$port/300.html" >"$dir/said" 2>&1; do
		alive "$nginx" || break
	done
	for load in 1/300 3/4000 2/30000; do
		ab -q -H 'Accept-Encoding: gzip' -c "${load%/*}" -t 600 -n 100000000 \
			"http://127.0.0.1:$port/${load#*/}.html" >"$dir/said" 2>&1 &
		ab+=($!)
	done
	loaded=1 looks watch web-server nginx
	kill "${ab[@]}" "$nginx"
	wait "${ab[@]}" "$nginx" 2>/dev/null
}

# Some thousand processes, most of which run for a few milliseconds. A build of profilctl takes some 12 s of CPU time.
# shellcheck disable=SC2016 # another shell's
build() {
	looks record build sh -c 'for turn in $(seq "$1"); do make -j4 -B B="$0" "$0/profilctl" || exit; done' \
		"$dir/build" $(((seconds + 9) / 10))
}

# A page whose script computes, in one of a browser's processes. They are not all waited for, so that "cost" does
# not have all of their CPU time.
browser() {
	cat >"$dir/page.html" <<-'END'
		<canvas id="c" width="600" height="400"></canvas><ul id="l"></ul><script>
		const context = document.getElementById('c').getContext('2d'), list = document.getElementById('l');
		const end = performance.now() + 1000 * Number(location.hash.slice(1));
		const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2);
		for (let turn = 0; performance.now() < end; turn++) {
			fib(20);
			JSON.parse(JSON.stringify([...Array(500)].map((_, i) => ({ key: i, name: 'x' + i }))));
			for (let i = 0; i < 50; i++)
				context.fillRect(Math.random() * 600, Math.random() * 400, 9, 9);
			const item = document.createElement('li');
			item.textContent = 'item ' + turn;
			list.append(item);
			if (list.children.length > 100)
				list.firstChild.remove();
			list.getBoundingClientRect();
		}
		</script>
	END
	compare=compare_functions looks record browser chromium --headless=new --no-sandbox --disable-gpu \
		--user-data-dir="$dir/chromium" --dump-dom "file://$dir/page.html#$seconds"
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
looks record gzip gzip -c "$dir/text"
# Blocks of 64 bytes: larger ones make a constant loop of some 10 us, whose small parts fall in step with
# sampling periods of 500 us, for one profiler more than for the other.
looks record openssl openssl speed -seconds "$seconds" -bytes 64 sha256
looks record python3 /usr/bin/python3 -c '
import sys, time
ns = float(sys.argv[1]) * 1e9
def work():
    x = 1
    while time.process_time_ns() < ns:
        for i in range(100000):
            if x is None or x is i:
                x = i
work()' "$seconds"
looks record files /usr/bin/python3 -c '
import os, sys, time
while time.process_time() < float(sys.argv[1]):
    for path, _, names in os.walk("/usr/share"):
        for name in names:
            os.lstat(path + "/" + name)' "$seconds"
if ${CXX:-g++} -O2 -g -o "$dir/words" tests/programs/words.cc; then
	looks record words "$dir/words" "$seconds" "$dir/text"
else
	fail "the C++ program compiles" "it cannot be compiled"
fi
if ! command -v go >/dev/null; then
	lacks "perf's profile of a Go program agrees" "go"
elif HOME=$dir GOFLAGS=-mod=mod go build -o "$dir/gowork" tests/programs/work.go; then
	looks record go "$dir/gowork" work "$seconds"
	"$BUILD/profilctl" record -F "$rate" -o "$dir/kept" -- "$dir/gowork" work 0.5
	check "report --by line finds source lines of a Go program" sh -c "$BUILD/profilctl report --by line \
		'$dir/kept' | grep -Eq '[a-z0-9_]+[.](go|s):[1-9][0-9]* .* gowork$'"
	looks record server "$dir/gowork" serve "$seconds"
else
	fail "the Go program compiles" "it cannot be compiled"
fi
if ! command -v node >/dev/null; then
	lacks "perf's profile of many processes agrees" "node"
else
	looks record cluster node tests/programs/cluster.js $((2 * seconds))
fi
database
web_server
build
if ! command -v chromium >/dev/null; then
	lacks "perf's profile of a browser agrees" "chromium"
else
	browser
fi
# A look of four times the samples is four times as long.
# shellcheck disable=SC2317,SC2329 # called by looks
attach_threads() {
	attach attach threads "$programs/threads" $((seconds * factor))
}
looks attach_threads
daemon_stop
finish
