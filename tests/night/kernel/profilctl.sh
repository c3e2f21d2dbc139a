#!/bin/bash
# profilctl.sh - record, attach and top over programs whose shares are known, counted by the kernel
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
# shellcheck source=tests/lib/verdict.sh
. tests/lib/verdict.sh

ctl=$BUILD/profilctl
spin=$dir/spin
late=$dir/late.so
${CC:-gcc} -O2 -g -o "$spin" tests/programs/spin.c -ldl -pthread || exit 1
${CC:-gcc} -O2 -g -shared -fPIC -o "$late" tests/programs/late.c || exit 1
strip "$late" # its dynamic symbols remain

# Records at 1000 Hz as JSON, into $dir/json.
profile() { # ARGS...
	"$ctl" record -F 1000 -f json -o "$dir/json" "$@"
}

json() { # FILTER
	jq -e "$1" "$dir/json" >/dev/null || { jq -c "del(.objects, .functions[20:])" "$dir/json"; false; }
}

# Invariants of every profile.
# shellcheck disable=SC2016 # jq's variables
conserved() {
	json '.schema == "profil/1" and .tick_ns > 0 and .duration_ns > 0
		and .samples.total == .samples.binned + .samples.unmatched + .samples.lost
		and ([.functions[].samples] | add // 0) == .samples.binned
		and ([.functions[].samples] | . == (sort | reverse))
		and (.samples.total as $t | all(.functions[];
			.percent - .samples * 100 / $t | fabs < 0.001))'
}

# Prints the part of the samples that FILTER selects, of at least 200. "Ns" among ARGS is N seconds, times FACTOR.
part() { # FACTOR FILTER profile|attach ARGS...
	local factor=$1 filter=$2 args=() arg

	for arg in "${@:3}"; do
		[[ $arg =~ ^[0-9.]+s$ ]] && arg=$(awk -v s="${arg%s}" -v f="$factor" 'BEGIN { print s * f }')
		args+=("$arg")
	done
	"${args[@]}" >/dev/null 2>&1 && jq -e ".samples.total as \$n | select(\$n >= 200) | $filter" "$dir/json"
}

attach() { # ARGS...
	"$ctl" attach -F 1000 -f json -o "$dir/json" "$@"
}

# The share of FUNCTION among hot, cold and in_library is SHARE, within 2 points: a process begins and ends elsewhere.
share() { # NAME FUNCTION SHARE profile|attach ARGS...
	equivalent "$1" "$3" 0.02 part "[.functions[] | select(.name | IN(\"hot\", \"cold\", \"in_library\"))] |
		([.[] | select(.name == \"$2\").samples] | add) / ([.[].samples] | add)" "${@:4}"
}

# The samples account for the command's CPU time, within 1 %.
complete() { # NAME profile ARGS...
	equivalent "$1" 1 0.01 part "\$n * .tick_ns / .cpu_ns" "${@:2}"
}

# The last profile has the function.
has_function() { # FUNCTION
	json ".functions | any(.name == \"$1\" and .samples > 0)"
}

nothing_unknown() {
	json '.samples.unmatched + .samples.lost <= 2 + .samples.total / 200'
}

# A kernel that allocates task storage by kmalloc_nolock() in an interrupt cannot do so on an x86 CPU
# without cmpxchg16b. Every CPU of the last fifteen years has it; an emulated one may not.
has_storage() {
	test "$(uname -m)" != x86_64 || grep -qw cx16 /proc/cpuinfo || ! grep -q kmalloc_nolock /proc/kallsyms
}

check_profile() { # NAME
	check "the samples of $1 add up" conserved
	check "hardly any sample of $1 is unmatched or lost" nothing_unknown
}

whole() {
	check "record profiles a program with two functions" profile -- "$spin" split 0.5
	check_profile "a program with two functions"
	check "the object of a function is the program's file" json ".functions[0].object == \"$spin\""
	check "record stores the exit status" json '.command_status == 0'
	share "hot has 70 % of a program with two functions" hot 0.7 profile -- "$spin" split 1s
	complete "the samples of a program with two functions account for its CPU time" profile -- "$spin" split 1s
	share "hot has 70 % of a threaded program" hot 0.7 profile -- "$spin" threads 0.4s
	check_profile "a threaded program"
	share "hot has 70 % of a program with children" hot 0.7 profile -- "$spin" children 0.4s
	check_profile "a program with children"
	complete "the samples of a program with children account for its CPU time" profile -- "$spin" children 0.4s
	# shellcheck disable=SC2016 # another shell's
	share "hot has 70 % of a script's programs" hot 0.7 profile -- sh -c '"$0" split "$1"; exec "$0" split "$1"' "$spin" 0.5s
	check_profile "a script"
	share "in_library has 80 % of a program with a library loaded by dlopen()" in_library 0.8 profile -- "$spin" late 1s "$late"
	check_profile "a library loaded by dlopen()"
	check "the object of a library's function is the library's file" json ".functions[0].object == \"$late\""

	check "record profiles generated code" profile -- "$spin" generated 1
	check_profile "generated code"
	check "generated code is named by its address" json '.functions[0]
		| (.name | test("^\\[anon\\]\\+0x[0-9a-f]+$")) and .object == "[anon]"'

	strip -o "$dir/bare" "$spin"
	check "record profiles a stripped program" profile -- "$dir/bare" split 1
	check_profile "a stripped program"
	check "functions of a stripped program are named by their offsets" json ".functions[0].name | startswith(\"$dir/bare+0x\")"
}

# Four children use 0.3 s of CPU time each.
says_unseen() {
	"$ctl" record --no-inherit -F 1000 -f json -o "$dir/json" -- "$spin" children 0.3 2>&1 |
		grep -E '1\.[12][0-9] s of CPU time are not in the profile: children ran'
}

options() {
	check "record profiles kernel mode" profile -- "$spin" calls 1
	check_profile "a program that spends its time in system calls"
	complete "the samples of a program that spends its time in system calls account for it" profile -- "$spin" calls 0.5s
	check "--user-only leaves out kernel mode" sh -c "test \$($ctl record --user-only -F 1000 -f json -o - -- \
		'$spin' calls 1 | jq .samples.total) -lt 300"
	check "--user-only leaves out kernel mode at the rate of the timer tick" sh -c "test \$($ctl record \
		--user-only -F 100 -f json -o - -- '$spin' calls 1 | jq .samples.total) -lt 30"
	check "record --no-inherit profiles a program with children" profile --no-inherit -- "$spin" children 0.3
	check "the samples of record --no-inherit add up" conserved
	check "--no-inherit leaves out children" json '.samples.total < 100'
	check "--no-inherit reports the CPU time of the children" says_unseen
	check "record -F 250 profiles a program" "$ctl" record -F 250 -f json -o "$dir/json" -- "$spin" split 1
	check "-F 250 makes ticks of 4 ms" json '.tick_ns == 4000000'

	check "record --slices profiles a program" profile --slices 4x0.1 -- "$spin" split 1
	check "the samples of record --slices add up" conserved
	check "--slices merges slices when their number is reached" json '(.functions[0].slices | length) <= 4
		and .slice_ns >= 400000000'
	check "the slices of a function add up to its samples" json 'all(.functions[];
		(.slices | add) == .samples)'

	check "HTML has the slices of the flame graph" sh -c "$ctl record -F 1000 -f html -o '$dir/html' -- '$spin' split 0.5 &&
		grep -q '\"slices\":{\"ns\":100000000,' '$dir/html'"

	check "record --threads profiles a threaded program" profile --threads -- sh -c "exec \"\$0\" threads 0.3" "$spin"
	check "the samples of record --threads add up" conserved
	check "the samples of the threads add up" json '([.groups[1:][].samples] | add) == .samples.binned'
	if has_storage; then
		equivalent "the first of four equal threads has a quarter of the samples" 0.25 0.02 part \
			"[.groups[1:][] | select(.thread == \"spin\" and .samples > 20)] | sort_by(.tid)[0].samples / \$n" \
			profile --threads -- sh -c "exec \"\$0\" threads \$1" "$spin" 0.2s
	else
		skip "the first of four equal threads has a quarter of the samples" "this CPU has no cmpxchg16b, so this kernel has no \
memory for a thread's account in an interrupt"
	fi
	check "--by thread names the threads" sh -c "$ctl record -F 1000 --by thread -- '$spin' split 0.3 2>&1 |
		grep -Eq '^ *[0-9]+[.][0-9]+ % .*  spin [(][0-9]+, of process [0-9]+[)]$'"

	check "record -o keeps a profile" "$ctl" record -F 1000 -o "$dir/kept" -- "$spin" split 0.5
	check "report reads a kept profile" sh -c "$ctl report '$dir/kept' | grep -Eq '% +[0-9.]+- *[0-9.]+ +[0-9]+ +[0-9.]+  hot +spin'"
	"$ctl" report -f json "$dir/kept" >"$dir/json"
	check "the samples of the report add up" conserved
	check "the report has every function of the kept profile" sh -c "test \"\$(jq -c .functions '$dir/kept')\" = \
		\"\$(jq -c .functions '$dir/json')\""
	check "the samples of the places add up" sh -c "test \$(jq '[.places[][3]] | add' '$dir/kept') -eq \
		\$(jq .samples.binned '$dir/kept')"
	check "text of short names fits 80 columns" sh -c "$ctl report '$dir/kept' | awk '/ spin$/ && length > 80 { exit 1 }'"

	# shellcheck disable=SC2016 # another shell's
	"$ctl" record -F 1000 -- sh -c 'echo out; echo err >&2; read -r x; echo "$x"; exit 7' \
		>"$dir/out" 2>"$dir/err" <<<"input"
	check "record returns the command's exit status" test $? -eq 7
	check "record prints nothing to standard output" test "$(cat "$dir/out")" = $'out\ninput'
	check "record prints the report to standard error, after the command's output" test "$(head -n 1 "$dir/err")" = err
	check "the report has the command's exit status" grep -qx 'the command exited with status 7' "$dir/err"
	profile -- sh -c 'kill -KILL $$'
	check "record returns 137 for a command killed by SIGKILL" test $? -eq 137
	check "the profile of a killed command has status 137" json '.command_status == 137'
	check "record profiles a command that ends at once" profile -- true
	check "the samples of a command that ends at once add up" conserved
	check "a command inherits record's descriptors and no others" sh -c "test \"\$($ctl record -o '$dir/json' \
		-- ls /proc/self/fd | wc -l)\" -eq \"\$(ls /proc/self/fd | wc -l)\""
	check "a command inherits record's limits" sh -c "ulimit -Sn 100; $ctl record -o '$dir/json' -- \
		sh -c 'test \$(ulimit -n) -eq 100'"
	# shellcheck disable=SC2016 # another shell's
	check "a command inherits record's scheduling" test "$("$ctl" record -o "$dir/json" -- sh -c 'chrt -p $$' |
		sed 's/.*current//')" = "$(chrt -p $$ | sed 's/.*current//')"

	check "record -d returns before the command ends" "$ctl" record -d 0.3 -f json -o "$dir/json" -- sh -c 'exec sleep 100 >/dev/null 2>&1'
	check "record -d stores no exit status of a running command" json '.command_status == null and .duration_ns > 290000000'
	check "the command keeps running after record -d" kill "$(jq .pid "$dir/json")"
}

attaching() {
	local pid status ctl_pid

	"$spin" split 1000 &
	pid=$!
	execed "$pid"
	share "hot has 70 % of an attached process" hot 0.7 attach -d 1s "$pid"
	check_profile "an attached process"
	check "an attached process keeps running after attach" alive "$pid"

	"$ctl" attach -F 1000 -f json -o "$dir/json" "$pid" &
	ctl_pid=$!
	attached "$pid"
	kill -INT "$ctl_pid"
	wait "$ctl_pid"
	check "attach writes a report on SIGINT" test $? -eq 0
	check "the samples of attach until SIGINT add up" conserved

	"$ctl" attach -F 1000 -f json -o "$dir/json" "$pid" &
	ctl_pid=$!
	attached "$pid"
	kill "$pid"
	wait "$ctl_pid"
	status=$?
	wait "$pid"
	check "attach writes a report when the process ends" test "$status" -eq 0
	check "the samples of attach until the process ends add up" conserved

	mkfifo "$dir/go"
	(read -r <"$dir/go" && exec "$spin" split 0.5) &
	pid=$!
	"$ctl" attach -F 1000 -f json -o "$dir/json" "$pid" &
	ctl_pid=$!
	attached "$pid"
	echo >"$dir/go"
	wait "$ctl_pid"
	check "attach follows an exec to the end of the process" test $? -eq 0
	check "the samples of attach across an exec add up" conserved
	check "a process that was attached before its exec has its functions" has_function hot
	wait "$pid"

	# shellcheck disable=SC2016 # another shell's
	sh -c '"$0" split 100 & "$0" split 100 & echo $! >"$1"; wait' "$spin" "$dir/second" &
	pid=$!
	until test -s "$dir/second"; do :; done
	check "attach accepts several pids" "$ctl" attach -F 1000 -d 0.5 -f json -o "$dir/json" \
		"$(pgrep -P "$pid" | grep -vx "$(cat "$dir/second")")" "$(cat "$dir/second")"
	check "attach keeps two processes apart" json '.processes == 2'
	pkill -P "$pid"
	wait "$pid"
}

ticks_of() { # PID
	"$ctl" list --json | jq --argjson pid "$1" '[.profiles[] | select(.pid == $pid).total] | add'
}

# The profiler is stopped for 700 ticks.
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
	while alive "$pid" && test "$(ticks_of "$pid")" -lt $((before + 700)); do :; done
	kill -CONT "$ctl_pid"
	kill "$pid"
	wait "$ctl_pid"
	check "a profiler that was stopped for 700 ticks returns 0" test $? -eq 0
	check "a profiler that was stopped for 700 ticks loses none of them" json '.samples.total >= 700 and .samples.lost == 0'
	wait "$pid"
}

# The process is in a cgroup named as systemd names them.
by_cgroup() { # PID
	local pid=$1 group=profil-test-$$ option

	mkdir -p "$dir/cgroup"
	if ! mount -t cgroup2 none "$dir/cgroup" 2>"$dir/stderr"; then
		skip "attach accepts --unit and --cgroup" "$(cat "$dir/stderr")"
		return
	fi
	mkdir -p "$dir/cgroup/$group/spin.service"
	echo "$pid" >"$dir/cgroup/$group/spin.service/cgroup.procs"
	for option in "--cgroup /$group" "--cgroup $(awk '/ - cgroup2 / && $4 == "/" { print $5; exit }' /proc/self/mountinfo)/$group" "--cgroup /sys/fs/cgroup/$group/" "--unit spin" "--unit spin.service"; do
		# shellcheck disable=SC2086 # an option and its value
		check "attach accepts $option" attach_until 20 -f json -o "$dir/json" $option
	done
	check "attach --unit stores cgroup and unit" json ".groups[1] |
		.cgroup == \"/$group/spin.service\" and .unit == \"spin.service\" and .pid == $pid"
	"$ctl" attach -d 0.2 --unit spi 2>"$dir/stderr"
	check "attach --unit does not accept a part of a name" test $? -eq 6
	arrive_in "$group/spin.service"
	echo "$pid" >"$dir/cgroup/cgroup.procs"
	rmdir "$dir/cgroup/$group/spin.service" "$dir/cgroup/$group"
	umount "$dir/cgroup"
}

# Attaches by OPTION, then runs COMMAND, whose processes and children use 1.7 s of CPU time. The process
# PID, which OPTION selects as well, is stopped meanwhile.
arrive() { # PID OPTION COMMAND...
	local pid=$1 option=$2

	shift 2
	kill -STOP "$pid"
	# shellcheck disable=SC2086 # an option and its value
	"$ctl" attach -F 1000 -f json -o "$dir/json" $option &
	ctl_pid=$!
	observing
	"$@" split 0.5
	"$@" children 0.3
	kill -INT "$ctl_pid"
	wait "$ctl_pid"
	check "attach $option profiles processes that start later" test $? -eq 0
	kill -CONT "$pid"
	check "the samples of attach $option add up" conserved
	check "attach $option counts every process once" json '.samples.total | . > 1600 and . < 1900'
}

arrive_in() { # GROUP
	# shellcheck disable=SC2016 # another shell's
	arrive "$one" "--cgroup /$1" sh -c 'echo $$ >"$0"; exec "$@"' "$dir/cgroup/$1/cgroup.procs" "$spin"
}

# Eighty processes one after the other, as in a build.
come_and_go() { # PID
	kill -STOP "$1"
	"$ctl" attach -F 1000 -f json -o "$dir/json" --exe "$spin" &
	ctl_pid=$!
	observing
	for _ in {1..80}; do
		"$spin" split 0.01
	done
	kill -INT "$ctl_pid"
	wait "$ctl_pid"
	kill -CONT "$1"
	check "the samples of attach --exe over 80 short processes add up" conserved
	check "attach --exe profiles each of 80 short processes" json '.processes == 80 and .samples.total > 780'
}

# Pids in a profile are those of the profiler's own pid namespace.
namespaced() {
	rm "$dir/json"
	# shellcheck disable=SC2016 # another shell's
	unshare --pid --fork --mount-proc bash -c '
		"$1" calls 100 & until test "/proc/$!/exe" -ef "$1"; do :; done
		"$0" attach -F 1000 -d 1 -f json -o "$2" --exe "$1"; kill %1; wait' \
		"$ctl" "$spin" "$dir/json"
	check "the samples of attach in a pid namespace add up" conserved
	check "attach in a pid namespace stores the pids of that namespace" json 'all(.groups[1:][]; .pid < 100) and
		([.groups[].pid] | max) > 0'
}

several() {
	local one other

	"$spin" split 100 &
	one=$!
	"$spin" split 100 &
	other=$!
	execed "$one"
	execed "$other"
	share "hot has 70 % of two processes" hot 0.7 attach -d 1s "$one" "$other"
	check "the samples of two processes add up" conserved
	check "attach accepts --exe" "$ctl" attach -F 1000 -d 1 -f json -o "$dir/json" --exe "$spin"
	check "the samples of attach --exe add up" conserved
	check "attach --exe finds both processes" json '.processes == 2'
	check "record -a profiles the machine" "$ctl" record -a -F 1000 -f json -o "$dir/json" -- sleep 0.5
	check "the samples of record -a add up" conserved
	check "record -a counts processes beside the command" json '[.functions[] | select(.name == "hot").samples] | add > 20'
	"$ctl" attach -a --comm spin -d 0.1 2>"$dir/stderr"
	check "attach returns 2 for -a together with --comm" test $? -eq 2
	check "attach accepts --comm" "$ctl" attach -d 0.5 -f json -o "$dir/json" --comm spin
	"$ctl" attach -d 0.1 --comm no-such-name -f json -o "$dir/json" 2>"$dir/stderr"
	check "attach --comm profiles nothing while no process has the name" json '.samples.total == 0'
	check "attach --comm says that no process has the name yet" grep -q 'no process is named no-such-name yet' "$dir/stderr"
	for event in cs context-switches; do
		"$ctl" record -e "$event" -f json -o "$dir/json" -- true
		check "a profile of $event has the event's first name" json '.event == "context-switches"'
	done
	install -m 755 "$spin" "$dir/later"
	"$ctl" attach -F 1000 --comm later -f json -o "$dir/json" 2>"$dir/stderr" &
	ctl_pid=$!
	await_listed ' attachment ' "$ctl_pid"
	"$dir/later" split 0.5
	kill -INT "$ctl_pid"
	wait "$ctl_pid"
	check "attach --comm profiles a process that starts later" json '
		.processes == 1 and ([.functions[] | select(.name == "hot").samples] | add > 100)'

	kill "$other"
	wait "$other"
	arrive "$one" "--exe $spin" "$spin"
	come_and_go "$one"
	by_cgroup "$one"
	namespaced

	"$ctl" top -b -n 2 -i 2 -F 1000 "$one" >"$dir/top"
	check "top -b returns 0" test $? -eq 0
	check "top -n 2 prints two tables" test "$(grep -c '^profilctl top' "$dir/top")" -eq 2
	check "top prints the hottest function first" test "$(awk '/^self/ { getline; print $(NF - 1) }' \
		"$dir/top" | sort -u)" = hot
	check "top fits 80 columns" awk 'length > 80 { exit 1 }' "$dir/top"
	"$ctl" top -b -n 1 -i 0.5 >"$dir/top"
	check "top shows every process of the machine" grep -q ' hot  *spin$' "$dir/top"
	"$ctl" top -b -i 0.2 "$one" >"$dir/top" &
	ctl_pid=$!
	attached "$one"
	kill "$one"
	wait "$one"
	wait "$ctl_pid"
	check "top ends when the process ends" test $? -eq 0
}

# On overlayfs, as in containers, stat() shows another device than the kernel knows.
on_overlay() {
	local pid

	mkdir "$dir"/{lower,upper,merged}
	cp "$spin" "$dir/lower/layered"
	if ! mount -t tmpfs none "$dir/upper" 2>"$dir/stderr" || ! mkdir "$dir"/upper/{files,work} || ! mount -t overlay \
		-o "lowerdir=$dir/lower,upperdir=$dir/upper/files,workdir=$dir/upper/work" none "$dir/merged" 2>"$dir/stderr"; then
		skip "attach --exe profiles a program on overlayfs" "it cannot be mounted: $(cat "$dir/stderr")"
		umount "$dir/upper" 2>/dev/null
		return
	fi
	"$dir/merged/layered" split 100 &
	pid=$!
	check "attach --exe profiles a program on overlayfs" \
		attach_until 300 -F 1000 -f json -o "$dir/json" --exe "$dir/merged/layered"
	check "functions of a program on overlayfs have names" has_function hot
	kill "$pid"
	wait "$pid"
	umount -l "$dir/merged" "$dir/upper"
}

# Programs whose paths do not lead to their files: one file was replaced, one is in a mount namespace
# of its own.
hidden() {
	local pid

	cp "$spin" "$dir/moved"
	"$dir/moved" split 100 &
	pid=$!
	until test "/proc/$pid/exe" -ef "$dir/moved"; do :; done
	rm "$dir/moved"
	cp "$(type -P true)" "$dir/moved"
	check "attach profiles a program whose file was replaced" attach_until 300 -F 1000 -f json -o "$dir/json" "$pid"
	check "functions of a program whose file was replaced have names" has_function hot
	check "attach --exe finds a program whose file was replaced" \
		attach_until 300 -F 1000 -f json -o "$dir/json" --exe "$dir/moved"
	check "attach --exe profiles a program whose file was replaced" has_function hot
	"$ctl" attach -d 0.1 -f json -o "$dir/json" --exe "$dir/moved" 2>"$dir/stderr"
	check "attach --exe says once that the file is not the one at the path" \
		test "$(grep -c '^profilctl: 1 process executes the file that was .* before: profiled as well$' "$dir/stderr")" -eq 1
	kill "$pid"
	wait "$pid"

	on_overlay
	mkdir "$dir/inside"
	if ! unshare --mount mount -t tmpfs none "$dir/inside" 2>"$dir/stderr"; then
		skip "attach profiles a program in a mount namespace" "no mount namespace can be had: $(cat "$dir/stderr")"
		return
	fi
	# shellcheck disable=SC2016 # another shell's
	unshare --mount sh -c 'mount -t tmpfs none "$1" && cp "$0" "$1/spin" && exec "$1/spin" split 100' \
		"$spin" "$dir/inside" &
	pid=$!
	until test "$(readlink "/proc/$pid/exe")" = "$dir/inside/spin"; do
		alive "$pid" && continue
		fail "attach profiles a program in a mount namespace" "it has not begun"
		return
	done
	check "attach profiles a program in a mount namespace" attach_until 300 -F 1000 -f json -o "$dir/json" "$pid"
	check "functions of a program in a mount namespace have names" has_function hot
	kill "$pid"
	wait "$pid"
}

# Waits until process PID has exec'd $spin.
execed() { # PID
	until test "/proc/$1/exe" -ef "$spin"; do
		alive "$1" || return
	done
}

# Waits until the daemon has an attachment to a file, cgroup, command or the machine.
observing() {
	await_listed ' \((file|cgroup|command|machine)\) +.* attachment ' "$!" ||
		fail "profild lists the attachment" "the profiler has ended, or a minute has passed"
}

# Waits until the daemon counts process PID for the profiler that was started last.
attached() { # PID
	until "$ctl" list | awk -v pid="$1" '$1 == pid { found = 1 } END { exit !found }'; do
		alive "$1" || return
		alive "$!" && continue
		fail "profild counts process $1" "the profiler has ended"
		return
	done
}

# Prints how often the daemon has blocked.
sleeps() {
	awk '/^voluntary_ctxt_switches/ { print $2 }' "/proc/$daemon/status"
}

# At 10 Hz hardly any child gets a tick.
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
	check "1000 forks of an attached process without ticks do not wake the daemon" \
		test $(($(sleeps) - before)) -lt 100
	wait "$attach"
}

others() {
	local pid

	"$spin" split 100 &
	pid=$!
	execed "$pid"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$ctl" attach "$pid" 2>"$dir/stderr"
	check "attach returns 4 for another user's process" test $? -eq 4
	check "attach refuses another user's process in one line" test "$(wc -l <"$dir/stderr")" -eq 1
	kill "$pid"
	wait "$pid"
	setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$ctl" record -F 1000 -f json -o - -- "$spin" split 0.5 >"$dir/json"
	check "any user may record a program" test $? -eq 0
	check "the samples of a user's program add up" conserved
	check "a user's program has its functions" has_function hot
	setpriv --reuid=65534 --regid=65534 --clear-groups "$ctl" record -F 1001 -- true 2>"$dir/stderr"
	check "record returns 125 at a rate that a user may not take" test $? -eq 125
	check "record advises a user to take a lower rate" grep -q 'at that rate: permission denied (take a lower rate, or run as root' "$dir/stderr"

	"$ctl" record -F 1000 -f json -o "$dir/json" -- "$spin" split 100 2>"$dir/stderr" &
	ctl_pid=$!
	until pid=$("$ctl" list | awk '$2 == "spin" && $6 > 300 { print $1 }'); test "$pid"; do
		alive "$ctl_pid" && continue
		fail "record has samples before the daemon is killed" "record has ended before: $(cat "$dir/stderr")"
		return
	done
	kill -KILL "$daemon"
	{ wait "$daemon"; } 2>/dev/null
	daemon=
	wait "$ctl_pid"
	check "record returns 125 when the daemon is killed" test $? -eq 125
	check "record reports the samples from before the daemon was killed" has_function hot
	kill "$pid"
	daemon_start # removes the killed daemon's pins
	daemon_stop
}

daemon_start
ctl=$(realpath "$ctl")
whole
options
attaching
standing_still
several
hidden
forking
others

none_below() { # DIRECTORY
	! pgrep -f "profild --socket $1"
}

# record starts a private daemon when none answers.
mkdir "$dir/tmp"
export PROFIL_SOCKET=$dir/no-daemon TMPDIR=$dir/tmp
check "record starts a daemon of its own" profile -- "$spin" split 1
check_profile "a program recorded without a daemon"
check "a program recorded without a daemon has its functions" has_function hot
check "record without a daemon leaves no file" test -z "$(ls -A "$dir/tmp")"
check "record without a daemon leaves no process" none_below "$dir/tmp"
finish
