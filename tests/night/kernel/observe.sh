#!/bin/bash
# observe.sh - many processes at once: short ones, a build, a database, the whole machine
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
# shellcheck source=tests/lib/database.sh
. tests/lib/database.sh

ctl=$(realpath "$BUILD/profilctl")
spin=$dir/spin
${CC:-gcc} -O2 -g -o "$spin" tests/programs/spin.c -ldl -pthread || exit 1
${CC:-gcc} -O2 -o "$dir/jit" tests/programs/jit.c || exit 1

json() { # FILTER
	jq -e "$1" "$dir/json" >/dev/null || { jq -c 'del(.objects, .functions[20:], .groups[5:])' "$dir/json"; false; }
}

conserved() {
	json '.samples.total == .samples.binned + .samples.unmatched + .samples.lost and
		([.functions[].samples] | add // 0) == .samples.binned'
}

# Every sample has an object. Functions of libraries and of the kernel have names, except BPF programs
# (at most 1 % of the samples and one more). Debian strips its programs: their functions are found by
# unwind information.
named() {
	json '.samples.unmatched + .samples.lost == 0 and all(.functions[]; .size > 0)' &&
		json '([.functions[] | select((.named | not) and (.object | test("/bin/") | not)).samples] |
			add // 0) <= 1 + .samples.total / 100'
}

short_ones() {
	# shellcheck disable=SC2016 # another shell's
	check "record profiles 800 short processes" "$ctl" record -F 999 -f json -o "$dir/json" -- \
		sh -c 'i=0; while test $i -lt 800; do /bin/true; i=$((i + 1)); done'
	check "the samples of the short processes add up" conserved
	check "every sample of the short processes has an object and a name" named
	check "more than 100 short processes have samples" json '.processes > 100'
	# shellcheck disable=SC2016 # another shell's
	check "record profiles 2000 short processes" "$ctl" record -F 4999 -f json -o "$dir/json" -- \
		sh -c 'i=0; while test $i -lt 2000; do /bin/true; i=$((i + 1)); done'
	check "a table distinguishes more than 1024 processes" json '.processes > 1024 and .samples.group_full == 0'
}

build() {
	mkdir "$dir/project"
	for i in 1 2 3 4 5 6 7 8; do
		sed "s/\\<main\\>/main_$i/" tests/programs/spin.c >"$dir/project/$i.c"
	done
	printf 'all: 1.o 2.o 3.o 4.o 5.o 6.o 7.o 8.o\n%%.o: %%.c\n\t%s -O2 -c -o $@ $<\n' "${CC:-gcc}" \
		>"$dir/project/Makefile"
	check "record profiles a build" "$ctl" record -F 999 -o "$dir/kept" -- make -j4 -C "$dir/project"
	"$ctl" report -f json "$dir/kept" >"$dir/json"
	check "the report of a build begins with the number of its processes" grep -qE \
		'^make -j4 .* [(][0-9]+ processes[)]$' <("$ctl" report "$dir/kept")
	check "the samples of the build add up" conserved
	check "every sample of the build has an object" json '.samples.unmatched + .samples.lost == 0'
	check "the compiler's commands are groups of the build's profile" json '[.groups[].command] | index("cc1") != null'
	# shellcheck disable=SC2016 # jq's variable
	check "the samples of the build account for its CPU time" json '(.samples.total * .tick_ns) as $seen |
		$seen > .cpu_ns * 0.95 and $seen < .cpu_ns * 1.05 + 20000000'
}

# Two processes have code of their own at one address, each with its name in a perf map.
compiled() {
	check "record profiles generated code of two processes" "$ctl" record -F 999 -f json -o "$dir/json" -- \
		sh -c "'$dir/jit' of_one 0.3 & '$dir/jit' of_two 0.3; wait"
	jq -r '.groups[] | select(.command == "jit") | "/tmp/perf-\(.pid).map"' "$dir/json" >"$dir/maps"
	xargs rm -f <"$dir/maps"
	check "generated code has the names of the first process's perf map" json '
		[.functions[] | select(.name == "of_one" and .samples > 200)] | length == 1'
	check "generated code has the names of the second process's perf map" json '
		[.functions[] | select(.name == "of_two" and .samples > 200)] | length == 1'
	check "the samples of the build add up" conserved
}

# Code that is no function's, and has a name in a jitdump only: node compiles regular expressions.
dumped() {
	echo "const slow = /(a+)+b/
for (const end = Date.now() + 1000; Date.now() < end;) slow.test('aaaaaaaaaaaaaaaaaaaa')" >"$dir/slow.js"
	check "record profiles regular expressions of node" "$ctl" record -F 999 -f json -o "$dir/json" -- \
		env -C "$dir" node --perf-prof slow.js
	# shellcheck disable=SC2016 # jq's variable
	check "they have the names of the jitdump" json '
		.samples.total as $all | [.functions[] | select(.name | startswith("RegExp:")) | .samples] | add > $all / 2'
}

# The program's file is deleted while the program runs, before attach.
deleted() {
	local pid

	cp "$spin" "$dir/moved"
	"$dir/moved" split 100 &
	pid=$!
	until test "/proc/$pid/exe" -ef "$dir/moved"; do alive "$pid" || break; done
	rm "$dir/moved"
	check "attach profiles a program whose file was deleted" attach_until 300 -F 999 -f json -o "$dir/json" "$pid"
	check "functions of a deleted program have names" json '.functions[0].name == "hot"'
	check "a deleted program has its build id" json '.objects[] | select(.path | endswith("/moved")).build_id != ""'
	kill "$pid"
	wait "$pid" 2>/dev/null
}

database() {
	local attach

	database_start "attach profiles a database under load" || return
	"$ctl" attach -F 999 -f json -o "$dir/json" "$postgres" 2>"$dir/stderr" &
	attach=$!
	await_listed "^ *$postgres .* attachment " "$attach"
	database_load 3
	wait "$pgbench"
	kill -INT "$attach"
	wait "$attach"
	check "attach profiles a database under load" test $? -eq 0
	check "the samples of the database add up" conserved
	# The backends were forked after attach.
	check "backends forked after attach are profiled as processes" json '.processes >= 8'
	# Debian's postgres is stripped: its functions are found by unwind information.
	check "every sample of the database has an object, and a function or a page" json '
		.samples.unmatched + .samples.lost == 0 and all(.functions[]; .size > 0)'
	kill "$postgres"
	wait "$postgres"
}

# A process that is not dumpable, as the sandboxed processes of a browser.
# The CPU time of a process, in ms.
cpu_ms() { # PID
	awk '{ print 10 * ($14 + $15) }' "/proc/$1/stat"
}

# Ends profiler PROFILER when process PID has used 500 ms of CPU time, or more: $least is how much. Returns its status.
end_after_500_ms() { # PROFILER PID
	least=$(cpu_ms "$2")
	until test "$(cpu_ms "$2")" -ge $((least + 500)); do alive "$1" || break; done
	least=$(($(cpu_ms "$2") - least))
	kill -INT "$1"
	wait "$1"
}

undumpable() {
	local shown hidden used least attach user=(setpriv --reuid=65534 --regid=65534 --clear-groups)

	install -m 755 "$spin" "$dir/spun"
	"${user[@]}" "$dir/spun" split 100 &
	shown=$!
	${CC:-gcc} -shared -fPIC -o "$dir/undumpable.so" -x c - <<-'END' || exit 1
		#include <sys/prctl.h>
		__attribute__((constructor)) static void hide(void) { prctl(PR_SET_DUMPABLE, 0); }
	END
	LD_PRELOAD=$dir/undumpable.so "${user[@]}" "$dir/spun" split 100 &
	hidden=$!
	until test "$(cat "/proc/$shown/comm" "/proc/$hidden/comm" | uniq -c | xargs)" = "2 spun"; do
		alive "$shown" || break
		alive "$hidden" || break
	done
	# It is not dumpable only when its first library runs. Root owns its files then.
	until test "$(stat -c %u "/proc/$hidden/maps")" = 0; do alive "$hidden" || break; done
	for select in "--comm spun" "--exe $dir/spun" --all; do
		used=$(cpu_ms "$hidden")
		# shellcheck disable=SC2086 # an option and its value
		"${user[@]}" "$ctl" attach $select -f json -o - >"$dir/json" 2>"$dir/stderr" &
		attach=$!
		await_listed ' attachment ' "$attach"
		end_after_500_ms "$attach" "$hidden"
		check "a user attaches by ${select%% *} to its own processes" test $? -eq 0
		used=$(($(cpu_ms "$hidden") - used)) # with profilctl's own start and end
		check "attach ${select%% *} counts no process that its user may not observe" json \
			"[.groups[] | select(.samples > 0 and .command == \"spun\").pid] == [$shown]"
		# By samples: two processes that take turns differ by a tenth from what they use.
		check "attach ${select%% *} counts the CPU time of a process that its user may not observe" json \
			".samples.hidden_ns / 1e6 > $least / 2 and .samples.hidden_ns / 1e6 < $used * 1.5 + 20"
		check "attach ${select%% *} says that CPU time is missing for want of permission" grep -Eq \
			'^profilctl: [0-9.]+ s of CPU time of your processes .* permission denied' "$dir/stderr"
	done
	kill "$hidden"
	wait "$hidden" 2>/dev/null
	"${user[@]}" "$ctl" attach --comm ended -f json -o - >"$dir/json" 2>"$dir/stderr" &
	attach=$!
	await_listed " attachment " "$attach"
	cp "$spin" "$dir/ended"
	LD_PRELOAD=$dir/undumpable.so "${user[@]}" "$dir/ended" split 0.3
	kill -INT "$attach"
	wait "$attach"
	# It is hidden as soon as its first library runs.
	check "attach --comm counts the CPU time of such a process that has ended" json \
		".samples.hidden_ns > 100000000 and .samples.total < 20"
	mkdir "$dir/elsewhere"
	install -m 755 "$spin" "$dir/elsewhere/spun"
	"${user[@]}" "$dir/elsewhere/spun" split 100 &
	hidden=$!
	await_busy "$hidden" "$dir/elsewhere/spun"
	"${user[@]}" "$ctl" attach --exe "$dir/spun" -d 1 -f json -o - >"$dir/json" 2>"$dir/stderr"
	check "attach --exe misses no CPU time of another file of the same name" json '.samples.hidden_ns == 0'
	kill "$hidden"
	wait "$hidden" 2>/dev/null
	cp "$dir/spun" "$dir/roots"
	"$dir/roots" split 100 &
	hidden=$!
	await_busy "$hidden" "$dir/roots"
	"${user[@]}" "$ctl" attach --comm roots -d 0.3 >"$dir/said" 2>&1
	check "attach --comm says that no observable process is selected" grep -q \
		'^no samples: no process that is selected and that you may observe used CPU time$' "$dir/said"
	kill "$hidden"
	wait "$hidden" 2>/dev/null
	"${user[@]}" "$ctl" attach --comm spun -d 1 -f json -o - >"$dir/json" 2>"$dir/stderr"
	check "attach --comm misses no CPU time of processes that its user may observe" json '.samples.hidden_ns == 0'
	check "attach --comm reports nothing missing then" sh -c "! grep -q 'CPU time' '$dir/stderr'"
	kill "$shown"
	wait "$shown" 2>/dev/null
}

# A shell waits for a child that ran before attach.
earlier_child() {
	local shell attach child used least

	# shellcheck disable=SC2016 # another shell's
	sh -c '"$1" split 100 & echo $! >"$2"; wait' - "$spin" "$dir/child" &
	shell=$!
	until test -s "$dir/child"; do alive "$shell" || break; done
	child=$(cat "$dir/child")
	await_busy "$child" "$spin"
	used=$(cpu_ms "$child")
	"$ctl" attach "$shell" >"$dir/said" 2>&1 &
	attach=$!
	await_listed "^ *$shell .* attachment " "$attach"
	end_after_500_ms "$attach" "$child"
	used=$(($(cpu_ms "$child") - used))
	# shellcheck disable=SC2016 # awk's
	check "attach says how much CPU time of earlier children is missing" awk -v least="$least" -v most="$used" '
		/^profilctl: [0-9.]+ s of CPU time are not in the profile: 1 child process ran already before/ {
			said = $2 * 1000 }
		{ print } END { print said, least, most; exit !(said >= least - 30 && said <= most + 30) }' "$dir/said"
	check "attach says that the shell itself used no CPU time" grep -q \
		'^no samples: less CPU time was used than a sample stands for$' "$dir/said"
	"$ctl" attach -d 0.7 "$shell" "$(cat "$dir/child")" >"$dir/said" 2>&1
	check "attach misses no CPU time of a child that is named" sh -c "! grep -q 'already before' '$dir/said'"
	kill "$(cat "$dir/child")"
	wait "$shell" 2>/dev/null
}

by() { # WHAT PATTERN
	if ! "$ctl" machine report --by "$1" >"$dir/said" 2>&1 || ! grep -Eq "$2" "$dir/said"; then
		cat "$dir/said"
		return 1
	fi
}

cannot() { # COMMAND...
	! "$@" >"$dir/said" 2>&1 && grep -q "does not distinguish" "$dir/said"
}

# What a filter leaves, of $dir/json.
left() {
	jq -c '[.samples.total, .samples.binned, .samples.lost, [.functions[] | [.name, .object, .samples]]]' "$dir/json"
}

# The program has ended, so its samples are the same in a profile that was kept after that.
selects() { # OPTION...
	local kept

	"$ctl" report -f json -o "$dir/json" "$@" "$dir/kept" && kept=$(left) &&
		"$ctl" machine report -f json -o "$dir/json" "$@" || return
	test "$kept" = "$(left)" || { echo "$kept, not $(left)"; return 1; }
	json ".samples.total > 50 and all(.functions[]; .object == \"$spin\")"
}

# Options that need functions of commands are refused at once.
refused() { # OPTION...
	timeout 5 "$ctl" machine report -d 60 "$@" >"$dir/said" 2>&1
	test $? -eq 2 && grep -Eq "^profilctl: machine report: .* by file only, .*'profilctl record -a -o FILE'" "$dir/said"
}

filters() {
	check "machine report -o keeps a profile" "$ctl" machine report -o "$dir/kept"
	check "machine report --object selects as report does" selects --object "$spin"
	check "machine report --function selects as report does" selects --object "$spin" --function hot
	check "machine report --fold-kernel counts as report does" selects --object "$spin" --fold-kernel
	check "machine report --object writes the selected samples" "$ctl" machine report --object "$spin" -o "$dir/some"
	check "a profile of selected samples has these alone" test \
		"$("$ctl" report -f json --object "$spin" "$dir/kept" | jq .samples.total)" -eq "$("$ctl" report -f json "$dir/some" | jq .samples.total)"
	check "machine report --by command takes --object" sh -c "$ctl machine report --by command --object '$spin' >'$dir/said' &&
		test \$(grep -cE '^ *[0-9.]+ % ' '$dir/said') -eq 1 && grep -qE '^ *[0-9.]+ % .* spin\$' '$dir/said'"
	check "machine report says what it selects" grep -qE "^only object $spin: [0-9]+ of [0-9]+ samples\$" "$dir/said"
	for option in --process --command; do
		check "machine report $option is refused before it counts" refused $option spin
	done
	check "machine report --by cgroup --function is refused before it counts" refused --by cgroup --function hot
	check "machine report --by command --fold-kernel is refused before it counts" refused --by command --fold-kernel
	sh -c 'while :; do :; done' & # an idle machine has no samples at all
	other=$!
	"$ctl" machine report -d 1 --object "$spin" >"$dir/said" 2>&1
	check "machine report -d returns 1 if nothing is selected" test $? -eq 1
	kill "$other"
	wait "$other" 2>/dev/null
	check "machine report -d says that nothing is selected" grep -q "^profilctl: machine report: no samples are of object $spin" "$dir/said"
	"$spin" split 100 &
	other=$!
	check "machine report -d selects samples" "$ctl" machine report -d 2 --object "$spin" -f json -o "$dir/json"
	check "machine report -d has the selected samples alone" json ".samples.total > 0 and all(.functions[]; .object == \"$spin\")"
	kill "$other"
	wait "$other" 2>/dev/null
}

# Prints how often the daemon's threads were scheduled, and their CPU time in ns.
daemon_work() {
	cat "/proc/$daemon/task"/*/status | awk '/^(non)?voluntary_ctxt_switches/ { n += $2 } END { printf "%d ", n }'
	cat "/proc/$daemon/task"/*/schedstat | awk '{ n += $1 } END { print n }'
}

# While the machine is profiled, forks, execs and exits send the daemon no event. Its own timers wake it
# less than once per hundred forks, for less than a thousandth of the forks' time.
forks_cost_nothing() {
	local before after forks

	read -r -a before < <(daemon_work)
	forks=$(perl -MPOSIX -e 'for (1 .. 4000) { my $p = fork // die; $p or exec("/bin/true") if $_ % 4 == 0; $p or POSIX::_exit(0);
		waitpid $p, 0 } my $s = 0; $s += $_ for times; printf "%d", $s * 1e9' 2>"$dir/said") || { cat "$dir/said"; return 1; }
	read -r -a after < <(daemon_work)
	echo "$((after[0] - before[0])) times on a CPU, $((after[1] - before[1])) ns beside $forks ns of forks"
	test $((after[0] - before[0])) -lt 40 && test $((1000 * (after[1] - before[1]))) -lt "$forks"
}

machine() {
	local before longer stopped busy

	check "machine on turns the machine profile on" "$ctl" machine on -F 100
	"$ctl" machine report -d 12 -f json -o "$dir/longer" & # longer than the timeout of a silent client
	longer=$!
	if command -v perl >/dev/null; then
		check "4000 forks wake the daemon less than 40 times" forks_cost_nothing
	else
		lacks "4000 forks wake the daemon less than 40 times" "perl"
	fi
	"$spin" split 1.5
	check "machine report shows the machine profile" "$ctl" machine report -f json -o "$dir/json"
	check "the samples of the machine profile add up" conserved
	check "machine report has a program that ran meanwhile" json '[.functions[] | select(.name == "hot").samples] | add > 50'
	before=$(jq .samples.total "$dir/json")
	check "machine report can be repeated" "$ctl" machine report -f json -o "$dir/json"
	check "a later machine report has at least as many samples" json ".samples.total >= $before"
	check "machine report -d waits for its time" "$ctl" machine report -d 0.3 -f json -o "$dir/json"
	check "machine report -d begins when it is called" json "now - .started | . >= 0 and . < 60"
	check "machine report -d has the samples of that time alone" json ".samples.total < $before and .duration_ns < 10000000000"
	check "machine top -b -n 1 prints one table and ends" timeout 60 "$ctl" machine top -b -i 0.2 -n 1
	"$ctl" machine report -d 2 -f json -o "$dir/json" &
	stopped=$!
	sleep 0.5
	kill -STOP "$stopped"
	kill -CONT "$stopped"
	wait "$stopped"
	check "machine report -d waits for its time after Ctrl-Z and fg" json ".duration_ns >= 2000000000"
	check "machine report --by command groups by command" by command '^ *[0-9.]+ % .* spin$'
	check "machine report --by cgroup groups by cgroup" by cgroup '^ *[0-9.]+ % .* /'
	check "machine report --by object groups by object" by object '^ *[0-9.]+ % .*/spin$'
	check "machine report --by process is refused before it counts" cannot timeout 5 "$ctl" machine report -d 60 --by process
	check "machine report --by process names what can" grep -q "'profilctl record -a --by process'" "$dir/said"
	filters
	"$spin" split 100 &
	busy=$!
	check "machine diff compares two times" "$ctl" machine diff -d 2 -f json -o "$dir/json"
	check "machine diff finds a program that began meanwhile" json 'any(.functions[]; .name == "hot" and .samples[1] > 0)'
	check "machine diff prints text" sh -c "$ctl machine diff -d 0.5 | grep -q '^B: the machine since then'"
	check "machine diff -o writes text" sh -c "umask 022; $ctl machine diff -d 0.2 -o '$dir/new.diff' &&
		grep -q '^B: ' '$dir/new.diff' && test \$(stat -c %a '$dir/new.diff') = 644"
	kill "$busy"
	wait "$busy" 2>/dev/null
	check "machine status shows that the machine profile is on" sh -c "$ctl machine status --json | jq -e '.on and .total > 0'"
	wait "$longer"
	check "machine report of 12 s returns 0" test $? -eq 0
	check "machine report of 12 s has the samples of 12 s" test "$(jq '.duration_ns > 12000000000 and .samples.total > 50' "$dir/longer")" = true
	"$ctl" machine on -F 50 2>"$dir/stderr"
	check "machine on at another rate says what it discards" grep -Eq 'until now, of [0-9]+ samples at 100 Hz, is discarded' "$dir/stderr"
	"$ctl" machine on -F 50 2>"$dir/stderr"
	check "machine on at the same rate discards nothing" sh -c "! grep discarded '$dir/stderr'"
	check "machine off turns the machine profile off" "$ctl" machine off
	check "machine status shows that the machine profile is off" sh -c "$ctl machine status --json | jq -e '.on | not'"
	"$ctl" machine report 2>"$dir/stderr"
	check "machine report returns 6 while the machine profile is off" test $? -eq 6
	setpriv --reuid=65534 --regid=65534 --clear-groups "$ctl" record --kernel-stacks --json -o /dev/null -- true 2>"$dir/stderr"
	check "record tells a user without the right that stacks have no frames of the kernel" \
		grep -q "no frames of the kernel: only root" "$dir/stderr"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$ctl" machine on 2>"$dir/stderr"
	check "machine on returns 4 for a user without the right" test $? -eq 4
	check "machine on names what a user without the right can do" grep -q "'profilctl record -a'" "$dir/stderr"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$ctl" machine report 2>"$dir/stderr"
	check "machine report names it, too" grep -q "permission denied .*'profilctl record -a'" "$dir/stderr"
}

needs jq "profilctl profiles many processes"
daemon_start
short_ones
build
compiled
dumped
deleted
database
undumpable
earlier_child
machine
daemon_stop
finish
