#!/bin/bash
# whole-machine.sh - kernel threads, all processes, units, default rates and build ids; forks cost nothing
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")
spin=$dir/spin
${CC:-gcc} -O2 -g -o "$spin" tests/programs/spin.c -ldl -pthread || exit 1

json() { # FILTER
	jq -e "$1" "$dir/json" >/dev/null || { jq -c 'del(.objects, .places, .folded, .functions[20:], .groups[20:])' "$dir/json"; false; }
}

conserved() {
	json '.samples.total == .samples.binned + .samples.unmatched + .samples.lost and
		([.functions[].samples] | add // 0) == .samples.binned'
}

is() { # NUMBER NUMBER
	test "$1" -eq "$2" || { echo "$1, not $2"; return 1; }
}

# The samples of rows whose name matches PATTERN in a text report.
samples_of() { # PATTERN
	awk -v name="$1" '/^ *[0-9.]+ %/ && $NF ~ name { n += $3 } END { print n + 0 }' "$dir/said"
}

# --- kernel threads ------------------------------------------------------------------------------

# A worker of the kernel removes what each network namespace had.
kernel_threads() {
	local workers kept=$dir/kept

	if ! unshare -n true 2>"$dir/stderr"; then
		skip "kernel threads have rows" "no network namespace can be had: $(cat "$dir/stderr")"
		return
	fi
	# shellcheck disable=SC2016 # another shell's
	check "record -a profiles kernel threads" "$ctl" record -a -q -F 999 -o "$kept" -- \
		bash -c 'for i in {1..300}; do unshare -n true; done'
	"$ctl" report -f json "$kept" >"$dir/json"
	check "the samples of record -a add up" conserved
	workers=$(jq '[.groups[] | select(.command | startswith("kworker/")).samples] | add // 0' "$dir/json")
	check "the kernel's workers have samples" test "$workers" -ge 20
	check "kernel threads have pids, and belong to root" json \
		'[.groups[] | select(.command | startswith("kworker/"))] | all(.pid > 0 and .uid == 0)'
	COLUMNS=80 "$ctl" report --all --by command "$kept" >"$dir/said"
	check "report --by command has rows of kernel threads with all their samples" is "$(samples_of '^kworker/')" "$workers"
	"$ctl" report -f json --command 'kworker/*' "$kept" >"$dir/json"
	check "report --command selects kernel threads" is "$(jq .samples.total "$dir/json")" "$workers"
	check "all samples of kernel threads are in the kernel" json 'all(.functions[]; .object == "[kernel]")'
	check "functions of kernel threads have names" json '[.functions[] | select(.named | not).samples] | add // 0 | . == 0'
	# They were in user mode at no time.
	"$ctl" report -f json --fold-kernel "$kept" >"$dir/json"
	check "report --fold-kernel counts the samples of kernel threads as unmatched" json ".samples.unmatched >= $workers"
	check "the samples of record -a add up after --fold-kernel" conserved
	check "report --fold-kernel leaves no sample in the kernel" json 'all(.functions[]; .object != "[kernel]")'
}

# --- all processes -------------------------------------------------------------------------------

seconds_between() { # LEAST MOST
	json ".duration_ns >= $1e9 and .duration_ns <= $2e9"
}

all_processes() {
	local began=$SECONDS

	check "record -a records without a command" "$ctl" record -a -d 1 -F 999 -f json -o "$dir/json"
	check "record -a -d takes its time, not more than it ran" seconds_between 1 $((SECONDS - began + 1))
	check "the samples of record -a without a command add up" conserved
	check "record -a without a command has a busy process" json '[.functions[] | select(.name == "hot").samples] | add > 20'
	check "record -a without a command has no pid and no status" json '.pid == 0 and .command_status == null'
	check "record -a without a command is named after the machine" json '.command == "the whole machine"'
	"$ctl" record -a -d 0.5 >"$dir/out" 2>"$dir/said"
	check "record -a without a command prints its report" grep -Eq '^ *[0-9.]+ %.* hot +spin$' "$dir/out" "$dir/said"
	"$ctl" top -a -b -n 1 -i 1 >"$dir/out"
	check "top -a -b -n 1 returns 0" test $? -eq 0
	check "top -a -b -n 1 prints one table" is "$(grep -c '^profilctl top' "$dir/out")" 1
	check "top -a -b has a busy process in its table" grep -Eq '^ *[0-9.]+ .* spin +hot +spin$' "$dir/out"
}

# --- the machine's profile -----------------------------------------------------------------------

# The busy process is in a cgroup named as systemd names them.
units() {
	local group=profil-test-$$

	mkdir "$dir/cgroup"
	if ! mount -t cgroup2 none "$dir/cgroup" 2>"$dir/stderr"; then
		skip "machine report --by unit has a row of a unit" "$(cat "$dir/stderr")"
		return
	fi
	mkdir -p "$dir/cgroup/$group/spin.service"
	echo "$busy" >"$dir/cgroup/$group/spin.service/cgroup.procs"
	"$ctl" machine report -d 1 --by unit >"$dir/said"
	check "machine report --by unit returns 0" test $? -eq 0
	check "machine report --by unit has a row of a unit" grep -Eq '^ *[0-9.]+ % .*  spin[.]service$' "$dir/said"
	check "machine report --by unit counts the unit's samples in one row" is "$(grep -c '  spin[.]service$' "$dir/said")" 1
	"$ctl" machine report -d 1 --by cgroup >"$dir/said"
	check "machine report --by cgroup has a row of the unit's cgroup" grep -Eq "^ *[0-9.]+ % .*  /$group/spin[.]service\$" "$dir/said"
	echo "$busy" >"$dir/cgroup/cgroup.procs"
	rmdir "$dir/cgroup/$group/spin.service" "$dir/cgroup/$group"
	umount "$dir/cgroup"
}

# No clock has 49999 Hz. Nothing is recorded instead.
too_fast() {
	local what refusal='profilctl: profild.s clock does not count at 49999 Hz; take a lower rate'

	for what in "machine on" "record -a -d 1" "top -a -n 1"; do
		# shellcheck disable=SC2086 # a verb and its options
		"$ctl" $what -F 49999 >"$dir/out" 2>"$dir/stderr"
		check "$what -F 49999 returns 2" test $? -eq 2
		check "$what -F 49999 says that the clock has no such rate, and nothing else" grep -qxz "$refusal." "$dir/stderr"
	done
}

machine() {
	local began

	too_fast
	check "machine on turns the machine's profile on" "$ctl" machine on
	check "the machine's profile has the daemon's rate" test "$("$ctl" machine status --json | jq .tick_ns)" -eq "$free_ns"
	began=$("$ctl" machine status --json | jq '[.tick_ns, .started_ns]')
	"$ctl" machine on -F 49999 2>"$dir/stderr"
	check "the machine's profile continues when a rate is refused" test "$("$ctl" machine status --json | jq '[.tick_ns, .started_ns]')" = "$began"
	check "the machine's profile takes the timer tick" none_held
	units
	"$ctl" machine top -b -n 1 -i 1 >"$dir/out"
	check "machine top -b -n 1 returns 0" test $? -eq 0
	check "machine top -b -n 1 prints one table" is "$(grep -c '^profilctl top' "$dir/out")" 1
	check "machine top -b has a busy program in its table" grep -Eq '^ *[0-9.]+ .* hot +spin$' "$dir/out"
	if command -v perl >/dev/null; then
		forks
	else
		lacks "forks cost the daemon no work" "perl"
	fi
	check "machine off turns the machine's profile off" "$ctl" machine off
}

# Forks by two processes, each for so many seconds of CPU time with its children, whatever else runs, and prints how often.
fork_for() { # SECONDS
	local each pids=()

	for each in 1 2; do
		perl -MPOSIX -e 'my ($n, $used, $end) = (0, 0, shift);
			while ($used < $end) { my $p = fork // die; $p or POSIX::_exit(0); waitpid $p, 0; $n++; $used = 0; $used += $_ for times }
			print "$n\n"' "$1" >"$dir/forks.$each" &
		pids+=($!)
	done
	wait "${pids[@]}"
	cat "$dir/forks".[12] | awk '{ n += $1 } END { print n + 0 }'
}

# The daemon's resident set in KiB, and the bytes of its BPF maps.
memory() {
	awk '$1 == "VmRSS:" { print $2 }' "/proc/$daemon/status"
	cat "/proc/$daemon"/fdinfo/* 2>/dev/null | awk '$1 == "memlock:" { n += $2 } END { print n + 0 }'
}

# Prints how often the daemon's threads were scheduled, and their CPU time in ns.
work() {
	cat "/proc/$daemon/task"/*/status | awk '/^(non)?voluntary_ctxt_switches/ { n += $2 } END { print n }'
	cat "/proc/$daemon/task"/*/schedstat | awk '{ n += $1 } END { print n }'
}

# Two seconds of forks, after some that let the daemon allocate what it needs.
forks() {
	local n without before=() after=() began=() ended=()

	fork_for 0.5 >/dev/null
	mapfile -t before < <(memory)
	mapfile -t began < <(work)
	n=$(fork_for 2)
	mapfile -t ended < <(work)
	mapfile -t after < <(memory)
	if test "$n" -lt 4000 && "$ctl" machine off && without=$(fork_for 2) && "$ctl" machine on 2>"$dir/stderr" && test "$without" -lt 5000; then
		skip "1000 forks in a second of CPU time cost the daemon no work" "this machine forks $((without / 4)) times"
		return
	fi
	check "a profiled machine forks 1000 times in a second of CPU time: $((n / 4))" test "$n" -ge 4000
	# Its own timers wake it.
	check "$n forks wake the daemon less than once per hundred: $((ended[0] - began[0])) times" \
		test $(((ended[0] - began[0]) * 100)) -lt "$n"
	check "$n forks take the daemon less than 0.5 % of a CPU: $(((ended[1] - began[1]) / 1000)) us" \
		test $((ended[1] - began[1])) -lt 10000000
	check "$n forks do not grow the daemon: ${before[0]} kB, then ${after[0]}" test "${after[0]}" -le $((before[0] + 256))
	check "$n forks do not grow the BPF maps: ${before[1]} bytes, then ${after[1]}" is "${after[1]}" "${before[1]}"
	check "the BPF maps have a size" test "${before[1]}" -gt 1000000
	"$ctl" status >"$dir/said"
	mapfile -t after < <(work)
	check "a request wakes the daemon" test "${after[0]}" -gt "${ended[0]}"
}

# --- default rates -------------------------------------------------------------------------------

# The number of perf events that the daemon holds: one per CPU on the CPU clock, none on the timer tick.
held() {
	find "/proc/$daemon/fd" -lname 'anon_inode:*perf_event*' 2>/dev/null | wc -l
}

# The daemon closes them some time after the last profile on the CPU clock has ended.
none_held() {
	local end=$((SECONDS + 20))

	until test "$(held)" -eq 0; do
		test "$SECONDS" -lt "$end" || { echo "$(held) perf events are held"; return 1; }
		read -r -t 0.1 <>"$dir/never" || :
	done
}

# The period of the daemon's 100 Hz, or of the timer tick if that is slower. 6: CLOCK_MONOTONIC_COARSE.
free_ns=$(python3 -c 'import time; print(max(10000000, round(time.clock_getres(6) * 1e9)))')

default_rates() {
	local profiler cpus

	cpus=$(getconf _NPROCESSORS_ONLN)
	check "no perf event is held without a profile" is "$(held)" 0
	"$ctl" top -a --json -i 0.5 >"$dir/tables" &
	profiler=$!
	await_listed ' attachment ' "$profiler"
	check "top takes the timer tick" is "$(held)" 0
	until test "$(wc -l <"$dir/tables")" -ge 1; do alive "$profiler" || break; done
	kill -INT "$profiler"
	wait "$profiler"
	head -n 1 "$dir/tables" >"$dir/json"
	check "top has the rate of the daemon" json ".tick_ns == $free_ns"
	# shellcheck disable=SC2016 # another shell's
	"$ctl" record -q -f json -o "$dir/json" -- sh -c 'find "/proc/$1/fd" -lname "anon_inode:*perf_event*" | wc -l >"$2"; exec "$3" split 0.3' \
		- "$daemon" "$dir/held" "$spin"
	check "record has 999 Hz by default" json '.tick_ns == 1001001'
	check "record takes the CPU clock by default" is "$(cat "$dir/held")" "$cpus"
	# 5 % and 15 samples are seven deviations in 300 samples and 100 slices.
	check "the samples of record at its default rate are the CPU time" json \
		'(.samples.total - .cpu_ns / .tick_ns | fabs) <= .cpu_ns / .tick_ns / 20 + 15'
	"$ctl" attach -f json -o "$dir/json" "$busy" 2>"$dir/stderr" &
	profiler=$!
	await_listed "^ *$busy " "$profiler"
	check "attach takes the CPU clock by default" is "$(held)" "$cpus"
	kill -INT "$profiler"
	wait "$profiler"
	check "attach has 999 Hz by default" json '.tick_ns == 1001001'
}

# --- build ids -----------------------------------------------------------------------------------

# What many programs execute: of the files that have a build id, at least 98 % have it in the profile, and
# none has another.
build_ids() {
	# shellcheck disable=SC2016 # another shell's
	"$ctl" record -q -F 4999 -f json -o "$dir/json" -- sh -c '
		"$1" -O2 -c -o "$2/object.o" tests/programs/spin.c
		"$1" -o "$2/linked" tests/programs/spin.c -ldl -pthread
		for i in 1 2 3; do
			/usr/bin/python3 -c "import json, decimal, email.message, ssl, sqlite3, lzma, ctypes; sum(range(300000))"
			find /usr/include -type f | sort | head -n 2000 | xargs cat | tee "$2/text" | gzip | gunzip | sha256sum
			perl -MPOSIX -e "\$x += \$_ for 1 .. 300000"
			awk "{ n += NF } END { print n }" "$2/text"
			xz -1 -c "$2/text" | xz -d | md5sum
			openssl dgst -sha512 "$2/text"
			git log --stat -n 3
			tar -C /usr/include -cf - linux | bzip2 | bunzip2 | cat
		done' - "${CC:-gcc}" "$dir" >"$dir/out" 2>&1
	python3 - "$dir/json" <<-'END'
		import json, os, re, subprocess, sys
		objects = {o["path"]: o["build_id"] for o in json.load(open(sys.argv[1]))["objects"] if o["path"].startswith("/")}
		have = missing = 0
		wrong = []
		for path, build_id in objects.items():
		    if not os.path.isfile(path):
		        continue
		    notes = subprocess.run(["readelf", "-nW", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
		    found = re.search(r"Build ID: ([0-9a-f]+)", notes)
		    if not found:
		        continue
		    have += build_id == found[1]
		    if not build_id:
		        missing += 1
		    elif build_id != found[1]:
		        wrong.append(path)
		print(f"{have} objects have their build id, {missing} have none, wrong: {wrong}")
		sys.exit(bool(wrong) or have < 20 or have < 0.98 * (have + missing))
	END
}

needs jq "profilctl profiles the whole machine"
mkfifo "$dir/never"
daemon_start
"$spin" split 1000 &
busy=$!
until test "/proc/$busy/exe" -ef "$spin"; do alive "$busy" || break; done
default_rates
kernel_threads
all_processes
machine
kill "$busy"
wait "$busy" 2>/dev/null
check "objects have the build ids of their files" build_ids
daemon_stop
finish
