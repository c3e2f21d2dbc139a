#!/bin/bash
# kernel-profilctl.sh - profiles of programs that are known beforehand, counted by the kernel
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

ctl=$BUILD/profilctl
spin=$dir/spin
late=$dir/late.so
${CC:-gcc} -O2 -g -o "$spin" tests/system/programs/spin.c -ldl -pthread || exit 1
${CC:-gcc} -O2 -g -shared -fPIC -o "$late" tests/system/programs/late.c || exit 1
strip "$late" # its dynamic symbols remain

# Who gets the CPU in slices of a few ticks, as on a busy machine, does not get his share of the ticks:
# what is compared with CPU time runs before all others: where that leaves a CPU for the profiler.
# In turns, for the profiler, too, may be woken on the command's CPU, and first come would keep it off.
alone=(chrt --rr 1)
if test "$(nproc)" -eq 1 || ! "${alone[@]}" true; then alone=(); fi

# Profiles at 1000 Hz as JSON, into $dir/json.
profile() { # ARGS...
	"${alone[@]}" "$ctl" record -F 1000 -f json -o "$dir/json" "$@"
}

# The same of what would keep all CPUs from all others. They take turns with them, which costs
# exactness: 1600 ticks have a standard deviation of 1.2 points, not 1.1, and two of 180 runs were more
# than 4 points off. So there are 3200.
profile_many() { # ARGS...
	"$ctl" record -F 1000 -f json -o "$dir/json" "$@"
}

json() { # FILTER
	jq -e "$1" "$dir/json" >/dev/null || { jq -c "del(.objects, .functions[20:])" "$dir/json"; false; }
}

# What must be true of every profile.
# shellcheck disable=SC2016 # jq's variables
conserved() {
	json '.schema == "profil/1" and .tick_ns > 0 and .duration_ns > 0
		and .samples.total == .samples.binned + .samples.unmatched + .samples.lost
		and ([.functions[].samples] | add // 0) == .samples.binned
		and ([.functions[].samples] | . == (sort | reverse))
		and (.samples.total as $t | all(.functions[];
			.percent - .samples * 100 / $t | fabs < 0.001))'
}

# The share of function $1 is $2 per cent, give or take $3.
share() { # FUNCTION PERCENT POINTS
	json "([.functions[] | select(.name == \"$1\").percent] | add // 0) - $2 | fabs <= $3"
}

# All ticks are there that the command's CPU time makes, give or take $1 per cent and two ticks.
complete() { # PERCENT
	json "(.samples.total - .cpu_ns / .tick_ns | fabs) <= .cpu_ns / .tick_ns * $1 / 100 + 2"
}

nothing_unknown() {
	json '.samples.unmatched + .samples.lost <= 2 + .samples.total / 200'
}

# shellcheck disable=SC2016 # jq's variable
quarters() {
	json '(.samples.total / 4) as $quarter |
		[.threads[] | select(.name == "spin" and (.samples - $quarter | fabs) < $quarter / 5)] | length == 4'
}

# A kernel that gives memory in an interrupt by kmalloc_nolock() gives none on an x86 CPU without
# cmpxchg16b: every one of the last fifteen years has it, an emulated one may not.
has_storage() {
	test "$(uname -m)" != x86_64 || grep -qw cx16 /proc/cpuinfo || ! grep -q kmalloc_nolock /proc/kallsyms
}

check_profile() { # NAME
	check "$1: adds up" conserved
	check "$1: nothing is unknown" nothing_unknown
}

check_alone() { # NAME
	check_profile "$1"
	check "$1: is complete" complete 2
}

whole() {
	check "it is profiled" profile -- "$spin" split 2
	check_alone "two functions"
	check "two functions: hot has 70 %" share hot 70 4
	check "two functions: cold has 30 %" share cold 30 4
	check "two functions: the object is the file" json ".functions[0].object == \"$spin\""
	check "two functions: the status is told" json '.command_status == 0'

	check "threads are profiled" profile_many -- "$spin" threads 0.8
	check_profile "threads"
	check "threads: hot has 70 %" share hot 70 5

	check "children are profiled" profile_many -- "$spin" children 0.8
	check_profile "children"
	check "children: hot has 70 %" share hot 70 5

	check "a script is profiled" profile -- sh -c "\"\$0\" split 0.5; exec \"\$0\" split 1" "$spin"
	check_alone "a script"
	check "a script: hot has 70 %" share hot 70 5

	check "a late library is profiled" profile -- "$spin" late 1.2 "$late"
	check_alone "a late library"
	check "a late library: in_library has 80 %" share in_library 80 4
	check "a late library: the object is the file" json ".functions[0].object == \"$late\""

	check "generated code is profiled" profile -- "$spin" generated 1
	check_alone "generated code"
	check "generated code: it has no name, but a place" json '.functions[0]
		| (.name | test("^\\[anon\\]\\+0x[0-9a-f]+$")) and .object == "[anon]" and .percent > 90'

	strip -o "$dir/bare" "$spin"
	check "a stripped program is profiled" profile -- "$dir/bare" split 1
	check_alone "a stripped program"
	check "a stripped program: functions have a place" json ".functions[0]
		| (.name | startswith(\"$dir/bare+0x\")) and .percent > 60 and .percent < 80"
}

options() {
	check "kernel mode is profiled" profile -- "$spin" calls 1
	check_alone "kernel mode"
	check "--user-only leaves it out" sh -c "test \$($ctl record --user-only -F 1000 -f json -- \
		'$spin' calls 1 | jq .samples.total) -lt 300"
	check "--no-inherit" profile_many --no-inherit -- "$spin" children 0.3
	check "--no-inherit: adds up" conserved
	check "--no-inherit: leaves children out" json '.samples.total < 100'
	check "-F 250" "${alone[@]}" "$ctl" record -F 250 -f json -o "$dir/json" -- "$spin" split 1
	check "-F 250: the tick is 4 ms" json '.tick_ns == 4000000'
	check "-F 250: is complete" complete 3

	check "--slices" profile --slices 4x0.1 -- "$spin" split 1
	check "--slices: adds up" conserved
	check "--slices: at most so many, longer ones" json '(.functions[0].slices | length) <= 4
		and .slice_ns >= 400000000'
	check "--slices: nothing is lost between them" json 'all(.functions[] | select(.shared | not);
		(.slices | add) == .samples)'

	"$ctl" record -F 1000 --slices 20x0.05 -o "$dir/kept" -- "$spin" split 0.5
	check "--slices: when which address was hot is kept" sh -c "$ctl report -f json '$dir/kept' |
		jq -e '([.bands[][3][]] | add) == .samples.binned and (.bands | length) > 1'"
	check "-f html: when it was hot" sh -c "$ctl record -F 1000 -f html -- '$spin' split 0.5 >'$dir/html' &&
		test \"\$(grep -c '<h2>Where and when' '$dir/html')\" -eq 1 &&
		grep -Eq '<span>spin[+]0x[0-9a-f]+ hot</span>' '$dir/html'"

	check "--threads" profile_many --threads -- sh -c "exec \"\$0\" threads 0.3" "$spin"
	check "--threads: adds up" conserved
	check "--threads: so do they" json '([.threads[].samples] | add) == .samples.binned'
	if ! quarters >/dev/null && ! has_storage; then
		skip "--threads: four have a quarter each" "this CPU has no cmpxchg16b, so this kernel has no \
memory for a thread's account in an interrupt"
	else
		check "--threads: four have a quarter each" quarters
	fi
	check "--by thread" sh -c "$ctl record -F 1000 --by thread -- '$spin' split 0.3 |
		grep -Eq '^ *[0-9]+[.][0-9]+ % .*  spin [(][0-9]+, of process [0-9]+[)]$'"

	check "-o without -f" "$ctl" record -F 1000 -o "$dir/kept" -- "$spin" split 0.5
	check "a report can be made of it" sh -c "$ctl report '$dir/kept' | grep -Eq '% +[0-9.]+- *[0-9.]+ +[0-9]+ +[0-9.]+  hot +spin'"
	"$ctl" report -f json "$dir/kept" >"$dir/json"
	check "... and adds up" conserved
	check "... and holds all that was kept" sh -c "test \"\$(jq -c .functions '$dir/kept')\" = \
		\"\$(jq -c .functions '$dir/json')\""
	check "places add up as well" sh -c "test \$(jq '[.places[][3]] | add' '$dir/kept') -eq \
		\$(jq .samples.binned '$dir/kept')"
	check "the text is in columns of 80" sh -c "$ctl report '$dir/kept' | awk 'length > 80 { exit 1 }'"

	# shellcheck disable=SC2016 # another shell's
	"$ctl" record -F 1000 -- sh -c 'echo out; echo err >&2; read -r x; echo "$x"; exit 7' \
		>"$dir/out" 2>"$dir/err" <<<"input"
	check "the command's own status is no error" test $? -eq 0
	check "its output comes first" test "$(head -n 2 "$dir/out" | tr '\n' ' ')" = "out input "
	check "its status is told" grep -qx 'the command exited with status 7' "$dir/out"
	check "stderr is its own alone" test "$(cat "$dir/err")" = err
	check "a killed command" profile -- sh -c 'kill -KILL $$'
	check "a killed command: has a shell's status" json '.command_status == 137'
	check "a command that is over at once" profile -- true
	check "a command that is over at once: adds up" conserved
	check "the command has our descriptors and no others" sh -c "test \"\$($ctl record -o '$dir/json' \
		-- ls /proc/self/fd | wc -l)\" -eq \"\$(ls /proc/self/fd | wc -l)\""
	check "... and our limits" sh -c "ulimit -Sn 100; $ctl record -o '$dir/json' -- \
		sh -c 'test \$(ulimit -n) -eq 100'"
	# shellcheck disable=SC2016 # another shell's
	check "... and our scheduling" test "$("$ctl" record -o "$dir/json" -- sh -c 'chrt -p $$' |
		sed 's/.*current//')" = "$(chrt -p $$ | sed 's/.*current//')"

	check "-d" "$ctl" record -d 0.3 -f json -o "$dir/json" -- sh -c 'exec sleep 100 >/dev/null 2>&1'
	check "-d: the command runs on" json '.command_status == null and .duration_ns > 290000000'
	check "-d: ... until it is ended" kill "$(jq .pid "$dir/json")"
}

attaching() {
	local pid status ctl_pid

	"${alone[@]}" "$spin" split 100 &
	pid=$!
	execed "$pid"
	check "attach" "$ctl" attach -F 1000 -d 1 -f json -o "$dir/json" "$pid"
	check "attach: adds up" conserved
	check "attach: hot has 70 %" share hot 70 5
	check "attach: nothing is unknown" nothing_unknown
	check "attach: the target runs on" kill -0 "$pid"

	"$ctl" attach -F 1000 -f json -o "$dir/json" "$pid" &
	ctl_pid=$!
	attached "$pid"
	kill -INT "$ctl_pid"
	wait "$ctl_pid"
	check "SIGINT ends it with a report" test $? -eq 0
	check "... which adds up" conserved

	"$ctl" attach -F 1000 -f json -o "$dir/json" "$pid" &
	ctl_pid=$!
	attached "$pid"
	kill "$pid"
	wait "$ctl_pid"
	status=$?
	wait "$pid"
	check "the target's end ends it with a report" test "$status" -eq 0
	check "... which adds up" conserved

	mkfifo "$dir/go"
	(read -r <"$dir/go" && exec sleep 100) &
	pid=$!
	"$ctl" attach -f json -o "$dir/json" "$pid" &
	ctl_pid=$!
	attached "$pid"
	echo >"$dir/go"
	wait "$ctl_pid"
	check "the target's exec ends it with a report" test $? -eq 0
	check "... and the target runs on" kill "$pid"
	wait "$pid"
}

ticks_of() { # PID
	"$ctl" list --json | jq --argjson pid "$1" '[.profiles[] | select(.pid == $pid).total] | add'
}

# A profiler that has no CPU for 700 ticks, each of which is told of by itself.
standing_still() {
	local pid ctl_pid before

	"$spin" split 100 &
	pid=$!
	execed "$pid"
	"$ctl" attach --threads -F 500 -f json -o "$dir/json" "$pid" &
	ctl_pid=$!
	attached "$pid"
	kill -STOP "$ctl_pid"
	before=$(ticks_of "$pid")
	while kill -0 "$pid" && test "$(ticks_of "$pid")" -lt $((before + 700)); do :; done
	kill -CONT "$ctl_pid"
	kill "$pid"
	wait "$ctl_pid"
	check "a profiler that stands still for 700 ticks" test $? -eq 0
	check "... loses none of them" json '.samples.total >= 700 and .samples.lost == 0'
	wait "$pid"
}

# A process in a cgroup as systemd makes them, in the new hierarchy or, as of old, in one of its own.
by_cgroup() { # PID TYPE OPTIONS...
	local pid=$1 type=$2 group=profil-test-$$ option

	shift 2
	mkdir -p "$dir/cgroup"
	if ! mount -t "$type" "$@" none "$dir/cgroup" 2>"$dir/stderr"; then
		skip "attach --unit, --cgroup: $type" "$(cat "$dir/stderr")"
		return
	fi
	mkdir -p "$dir/cgroup/$group/spin.service"
	echo "$pid" >"$dir/cgroup/$group/spin.service/cgroup.procs"
	for option in "--cgroup /$group" "--cgroup /sys/fs/cgroup/$group/" "--unit spin" "--unit spin.service"; do
		# shellcheck disable=SC2086 # an option and its value
		check "attach $option: $type" "$ctl" attach -d 0.2 -f json -o "$dir/json" $option
	done
	"$ctl" attach -d 0.2 --unit spi 2>"$dir/stderr"
	check "attach --unit: its whole name: $type" test $? -eq 6
	arrive_in "$group/spin.service"
	echo "$pid" >"$dir/cgroup/cgroup.procs"
	rmdir "$dir/cgroup/$group/spin.service" "$dir/cgroup/$group"
	umount "$dir/cgroup"
}

# All that $2 says is profiled while the rest of the command runs: 1.7 s of CPU time of processes
# that come later, children too; the one that was there before, $1, is stopped. On a busy machine
# some of it is over before the daemon has its turn.
arrive() { # PID OPTION COMMAND...
	local pid=$1 option=$2

	shift 2
	kill -STOP "$pid"
	# shellcheck disable=SC2086 # an option and its value
	"$ctl" attach -F 1000 -f json -o "$dir/json" $option &
	ctl_pid=$!
	attached "$pid"
	"${alone[@]}" "$@" split 0.5
	"$@" children 0.3
	kill -INT "$ctl_pid"
	wait "$ctl_pid"
	check "attach $option: who comes later" test $? -eq 0
	kill -CONT "$pid"
	check "attach $option: ... adds up" conserved
	check "attach $option: ... is all there, once" json '.samples.total | . > 1000 and . < 1900'
}

arrive_in() { # GROUP
	# shellcheck disable=SC2016 # another shell's
	arrive "$one" "--cgroup /$1" sh -c 'echo $$ >"$0"; exec "$@"' "$dir/cgroup/$1/cgroup.procs" "$spin"
}

# As a build does: eighty processes, one after the other. Those that have gone take no room.
come_and_go() { # PID
	local many

	kill -STOP "$1"
	"$ctl" attach -F 1000 -f json -o "$dir/json" --exe "$spin" &
	ctl_pid=$!
	attached "$1"
	for _ in {1..80}; do
		"$spin" split 0.01
	done
	many=$("$ctl" list | wc -l)
	kill -INT "$ctl_pid"
	wait "$ctl_pid"
	kill -CONT "$1"
	check "attach --exe: eighty that come and go: adds up" conserved
	check "attach --exe: ... most of them are seen" json '.samples.total > 500'
	check "attach --exe: ... not all $many are kept" test "$many" -lt 45
}

# A storm of forks that is not heard of in time, as on a machine that is too busy.
unheard() {
	"$ctl" attach -f json -o "$dir/json" --exe "$spin" 2>"$dir/stderr" &
	ctl_pid=$!
	attached "$1"
	kill -STOP "$ctl_pid"
	python3 -c 'import os
for _ in range(8000):
    os.waitpid(os.fork() or os._exit(0), 0)'
	kill -INT "$ctl_pid"
	kill -CONT "$ctl_pid"
	wait "$ctl_pid"
	check "attach --exe: too many that come at a time: status 3" test $? -eq 3
	check "attach --exe: ... and why" grep -q 'some may be missing$' "$dir/stderr"
	check "attach --exe: ... adds up" conserved
}

# Where the kernel does not tell of processes that begin, they are looked for.
looked_for() {
	rm "$dir/json"
	# shellcheck disable=SC2016 # another shell's
	unshare --pid --fork --mount-proc bash -c '
		"$1" calls 100 & until test "/proc/$!/exe" -ef "$1"; do :; done
		"$0" attach -F 1000 -d 2.5 -f json -o "$2" --comm spin & ctl=$!
		"$1" split 100 & wait $ctl; kill %1 %3; wait' "$ctl" "$spin" "$dir/json"
	check "attach without the kernel's word: adds up" conserved
	check "attach without the kernel's word: who comes later" json '[.functions[] |
		select(.name == "hot").samples] | add > 50'
}

several() {
	local one other

	"$spin" split 100 &
	one=$!
	"$spin" split 100 &
	other=$!
	execed "$one"
	execed "$other"
	check "attach to two" "$ctl" attach -F 1000 -d 1 -f json -o "$dir/json" "$one" "$other"
	check "attach to two: adds up" conserved
	check "attach to two: hot has 70 %" share hot 70 5
	"$ctl" attach -F 1000 -f json -o "$dir/json" --exe "$spin" &
	ctl_pid=$!
	attached "$one"
	attached "$other"
	kill -INT "$ctl_pid"
	wait "$ctl_pid"
	check "attach --exe: finds both" test $? -eq 0
	check "attach --exe: adds up" conserved
	check "attach --comm" "$ctl" attach -d 0.5 -f json -o "$dir/json" --comm spin
	"$ctl" attach -d 0.5 --comm no-such-name 2>"$dir/stderr"
	check "attach --comm: nobody is called so: status 6" test $? -eq 6

	kill "$other"
	wait "$other"
	arrive "$one" "--exe $spin" "$spin"
	come_and_go "$one"
	unheard "$one"
	by_cgroup "$one" cgroup2
	by_cgroup "$one" cgroup -o none,name=systemd
	looked_for

	"$ctl" top -b -n 2 -i 0.5 -F 1000 "$one" >"$dir/top"
	check "top -b" test $? -eq 0
	check "top: two tables" test "$(grep -c '^profilctl top' "$dir/top")" -eq 2
	check "top: what is hot comes first" test "$(awk '/^self/ { getline; print $(NF - 1) }' \
		"$dir/top" | sort -u)" = hot
	check "top: in columns of 80" awk 'length > 80 { exit 1 }' "$dir/top"
	"$ctl" top -b -n 1 -i 0.5 >"$dir/top"
	check "top of all" grep -q ' hot  *spin$' "$dir/top"
	"$ctl" top -b -i 0.2 "$one" >"$dir/top" &
	ctl_pid=$!
	attached "$one"
	kill "$one"
	wait "$one"
	wait "$ctl_pid"
	check "top ends with what it shows" test $? -eq 0
}

# The daemon hangs up on a connection on which nothing is asked for ten seconds.
long_before() {
	cp "$spin" "$dir/later"
	"$ctl" top -b -n 1 -i 13 -F 1000 --comm later >"$dir/top" 2>"$dir/stderr" &
	ctl_pid=$!
	sleep 11.5
	"$dir/later" split 1
	wait "$ctl_pid"
	check "top --comm: who comes long after it: status" test $? -eq 0
	check "top --comm: ... is there" grep -q ' hot  *later$' "$dir/top"
}

# Programs whose files cannot be found by their paths: one has been replaced, one is in a mount
# namespace of its own.
hidden() {
	local pid

	cp "$spin" "$dir/moved"
	"$dir/moved" split 100 &
	pid=$!
	until test "/proc/$pid/exe" -ef "$dir/moved"; do :; done
	rm "$dir/moved"
	echo "another one" >"$dir/moved"
	check "a program that was replaced" "$ctl" attach -F 1000 -d 0.5 -f json -o "$dir/json" "$pid"
	check "a program that was replaced: has its names" share hot 70 8
	check "a program that was replaced: is found by its path" \
		"$ctl" attach -d 0.1 -f json -o "$dir/json" --exe "$dir/moved"
	kill "$pid"
	wait "$pid"

	mkdir "$dir/inside"
	if ! unshare --mount mount -t tmpfs none "$dir/inside" 2>"$dir/stderr"; then
		skip "a program of a container" "no mount namespace can be had: $(cat "$dir/stderr")"
		return
	fi
	# shellcheck disable=SC2016 # another shell's
	unshare --mount sh -c 'mount -t tmpfs none "$1" && cp "$0" "$1/spin" && exec "$1/spin" split 100' \
		"$spin" "$dir/inside" &
	pid=$!
	until test "$(readlink "/proc/$pid/exe")" = "$dir/inside/spin"; do
		kill -0 "$pid" && continue
		fail "a program of a container" "it has not begun"
		return
	done
	check "a program of a container" "$ctl" attach -F 1000 -d 0.5 -f json -o "$dir/json" "$pid"
	check "a program of a container: has its names" share hot 70 8
	kill "$pid"
	wait "$pid"
}

# Waits until process $1 is no shell any more.
execed() { # PID
	until test "/proc/$1/exe" -ef "$spin"; do
		kill -0 "$1" || return
	done
}

# Waits until the daemon counts process $1 for the profiler that was started last.
attached() { # PID
	until "$ctl" list | awk -v pid="$1" '$1 == pid { found = 1 } END { exit !found }'; do
		kill -0 "$1" || return
		kill -0 "$!" && continue
		fail "a profile of process $1" "its profiler has gone"
		return
	done
}

# How often the daemon has gone to sleep.
sleeps() {
	awk '/^voluntary_ctxt_switches/ { print $2 }' "/proc/$daemon/status"
}

# At ten ticks a second next to no child has one.
forking() {
	local pid attach before

	mkfifo "$dir/forks"
	(read -r _ && for ((i = 0; i < 1000; i++)); do (:); done) <"$dir/forks" &
	pid=$!
	exec {go}>"$dir/forks"
	"$ctl" attach -F 10 -f json -o "$dir/json" "$pid" &
	attach=$!
	attached "$pid"
	before=$(sleeps)
	echo >&"$go"
	exec {go}>&-
	wait "$pid"
	check "1000 children that are attached to, and have no tick, leave the daemon asleep" \
		test $(($(sleeps) - before)) -lt 100
	wait "$attach"
}

others() {
	local pid

	"$spin" split 100 &
	pid=$!
	execed "$pid"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$ctl" attach "$pid" 2>"$dir/stderr"
	check "another user's process: status 4" test $? -eq 4
	check "... in one line" test "$(wc -l <"$dir/stderr")" -eq 1
	kill "$pid"
	wait "$pid"
	"${alone[@]}" setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$ctl" record -F 1000 -f json -- "$spin" split 0.5 >"$dir/json"
	check "anybody may profile what he runs" test $? -eq 0
	check "... and it adds up" conserved
	check "... and is complete" complete 3

	"$ctl" record -F 1000 -f json -o "$dir/json" -- "$spin" split 100 2>"$dir/stderr" &
	ctl_pid=$!
	until pid=$("$ctl" list | awk '$2 == "spin" && $6 > 300 { print $1 }'); test "$pid"; do
		kill -0 "$ctl_pid" && continue
		fail "a daemon that is killed" "record has ended before: $(cat "$dir/stderr")"
		return
	done
	kill -KILL "$daemon"
	{ wait "$daemon"; } 2>/dev/null
	daemon=
	wait "$ctl_pid"
	check "a daemon that is killed: status 3" test $? -eq 3
	check "... and a report of what there was" share hot 70 8
	kill "$pid"
	daemon_start # it puts away what the killed one has left in the kernel
	daemon_stop
}

daemon_start
ctl=$(realpath "$ctl")
whole
options
attaching
standing_still
several
long_before
hidden
forking
others

none_below() { # DIRECTORY
	! pgrep -f "profild --socket $1"
}

# And all of it once more where no daemon is.
mkdir "$dir/tmp"
export PROFIL_SOCKET=$dir/nobody TMPDIR=$dir/tmp
check "without a daemon" profile -- "$spin" split 1
check_alone "without a daemon"
check "without a daemon: hot has 70 %" share hot 70 5
check "without a daemon: no file is left" test -z "$(ls -A "$dir/tmp")"
check "without a daemon: no process is left" none_below "$dir/tmp"
finish
