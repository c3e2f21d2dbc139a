#!/bin/bash
# run.sh - runs test suites, four at a time, and ends with what failed and a line of totals
#
# usage: tests/run.sh quick|gate|SUITE...
#        tests/run.sh night [SUITE...]    enters a night, or a part of one, into tests/NIGHTLY
#        tests/run.sh --where             lists each suite with the command that runs it
#
# A SUITE is a bash script, a Criterion binary, or BINARY:NAME, one Criterion suite of it. "replay:" or
# "kernel:" before it says what its daemons count with (PROFIL_TEST_OVER); "user:" is "replay:" as an
# ordinary user, which root becomes for it. As root each suite has a mount namespace with a bpffs of its own,
# a network namespace and a cgroup of its own.
#
# Exit status: 0 when every test ran and passed, 1 when a test failed, 2 when there is no verdict: no test
# ended for 300 s, the run took 20 minutes, root, BTF or a tool of "make deps" is missing, or a test of the
# night could not tell chance from a fault.
# PROFIL_TEST_ALLOW_SKIP=1 accepts what is missing. Named suites may be silent for PROFIL_TEST_SILENCE_S.
set -u
exec 2>&1
cd "$(dirname "$0")/.." || exit 1

export BUILD=${BUILD:-build}
export PATH=/usr/bin:$PATH # what "make deps" installs comes before a version manager's, whose python3 takes a second to start
workers=${PROFIL_TEST_WORKERS:-4}
silence_s=300 total_s=1200

# libprofil as LD_PRELOAD takes it: behind the sanitizer's library, in a build that has one.
PROFIL_PRELOAD=$PWD/$BUILD/libprofil.so.1
case ${SAN:-} in
*address*) PROFIL_PRELOAD=$(${CC:-gcc} -print-file-name=libasan.so):$PROFIL_PRELOAD ;;
esac
export PROFIL_PRELOAD

# --- one suite, in a process of its own ---

fault() { # WHAT
	printf 'FAIL %s: %s\n' "$program" "$1" | tee -a "$PROFIL_TEST_DIR/failures"
}

# Keeps FAIL lines, a guest's too, tests without a verdict, and what a missing tool left untested.
recall() { # FILE
	grep -E '^([^ ]+ +([0-9][^ ]* +)?)?FAIL ' "$1" >>"$PROFIL_TEST_DIR/failures"
	sed -nE 's/^ok - ([^ ]+) +# SKIP (no verdict): /\2 \1: /; /^no verdict /p' "$1" >>"$PROFIL_TEST_DIR/unsure"
	sed -nE "s/^ok - (.*: sudo make deps)$/skip \1/; /^skip .*: sudo make deps$/p" "$1" >>"$PROFIL_TEST_DIR/lacks"
}

# A TAP file's failures as lines "FAIL NAME: why".
criterion_failures() { # FILE
	awk '
		/^(not )?ok/ && line { print line; line = "" }
		/^not ok/ { sub(/^not ok - /, ""); sub(/ +/, ": "); line = "FAIL " $0 }
		line && /^  - / { sub(/: \|.$/, ""); line = line " " $2 ":" }
		line && /^      ./ { sub(/^ +/, ""); line = line " " $0 }
		END { if (line) print line }' "$1"
}

# Prints PASSED FAILED SKIPPED UNSURE. A test that the filter excluded has the reason "test was skipped".
criterion_totals() { # FILE
	awk '
		/^ok/ && /# SKIP test was skipped$/ { next }
		/^ok/ && /# SKIP no verdict: / { u++; sub(/^ok - /, ""); sub(/ +# SKIP/, ":"); print > "/dev/stderr"; next }
		/^ok/ && /# SKIP/ { s++; sub(/^ok - /, ""); print "skip " $0 > "/dev/stderr"; next }
		/^ok/ { p++ }
		/^not ok/ { f++ }
		END { print p + 0, f + 0, s + 0, u + 0 }' "$1"
}

# Prints a filter for the suite NAME, or for those that run OVER.
criterion_filter() { # OVER NAME
	case $1,$2 in
	*,?*) echo "$2/*" ;;
	replay,) echo '!(kernel_*)/*' ;;
	kernel,) echo '!(replay_*)/*' ;;
	esac
}

# Runs COMMAND in the suite's cgroup, and ends what it leaves running: it would hold the output open. A daemon that was told to
# end has 10 s for that.
contained() { # COMMAND...
	local n=0

	(
		test -z "$cgroup" || echo "$BASHPID" >"$cgroup/cgroup.procs"
		exec "$@"
	)
	set -- $?
	while test "$cgroup" && read -r <"$cgroup/cgroup.procs" && test $n -lt 200; do
		n=$((n + 1))
		sleep 0.05
	done
	test -z "$cgroup" || echo 1 >"$cgroup/cgroup.kill"
	return "$1"
}

# The waits inside of the tests end after at most 160 s, with the daemon's log.
run_criterion() { # BINARY OVER NAME
	local tap=$PROFIL_TEST_DIR/tap

	contained "${as[@]}" "$1" -j1 --timeout 600 --verbose --tap="$tap" --filter "$(criterion_filter "$2" "$3")" 2>&1 |
		grep -v --line-buffered ': Test is disabled$'
	status=${PIPESTATUS[0]}
	totals=''
	test -s "$tap" || return
	totals=$(criterion_totals "$tap")
	criterion_failures "$tap" >>"$PROFIL_TEST_DIR/failures"
	recall "$tap"
}

run_script() { # SCRIPT
	local out=$PROFIL_TEST_DIR/out

	contained "${as[@]}" "$1" </dev/null | tee "$out"
	status=${PIPESTATUS[0]}
	totals=$(tail -n 1 "$out" | sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped(, ([0-9]+) without a verdict)?$/\1 \2 \3 \5/p')
	recall "$out"
}

# Gives this process a bpffs and a loopback device that no other suite uses, makes a cgroup for the suite, and hides what the
# machine's root has described for its own profile.
isolate() {
	local cgroups

	test "${PROFIL_TEST_MOUNTS:-}" || return
	test -z "${PROFIL_TEST_NET:-}" || ip link set lo up || return
	mount -t bpf none /sys/fs/bpf || return
	export PROFIL_TEST_APART=1 # files of /etc can be replaced by mounts
	test ! -d /var/lib/profil || mount -t tmpfs none /var/lib/profil || return
	cgroups=$(findmnt -n -o TARGET -t cgroup2 | head -n 1)
	cgroup=${cgroups:+$cgroups/profil-test.$$}
	test "$cgroup" && mkdir "$cgroup" 2>/dev/null || cgroup=''
}

# Looks for what the suite left in the kernel, and removes its cgroup.
clear_up() { # the directory goes with the run's
	local left

	left=$(find /sys/fs/bpf -maxdepth 1 -name 'profil-*' 2>/dev/null)
	test -z "$left" || test -z "${PROFIL_TEST_APART:-}" || fault "a daemon was killed and none followed: it left ${left//$'\n'/ }"
	test "$cgroup" || return
	sed -n 's/^usage_usec //p' "$cgroup/cpu.stat" >"$PROFIL_TEST_DIR/cpu_us"
	until rmdir "$cgroup" 2>/dev/null; do sleep 0.05; done
}

# Root's clone can be below a folder that the ordinary user may not search, as /root: it then has nothing but the clone.
show_tree() {
	local tree=$PWD hidden='' part

	test "${PROFIL_TEST_MOUNTS:-}" || return 0
	while IFS= read -r -d / part; do
		hidden=$hidden/$part
		"${as[@]}" test -x "$hidden" || break
	done <<<"${tree#/}/"
	! "${as[@]}" test -x "$hidden" || return 0
	if ! { mkdir "$PROFIL_TEST_DIR/tree" && mount --bind "$tree" "$PROFIL_TEST_DIR/tree" &&
		mount -t tmpfs -o mode=755 none "$hidden" && mkdir -p "$tree" &&
		mount --bind "$PROFIL_TEST_DIR/tree" "$tree" && cd "$tree"; }; then
		fault "the ordinary user cannot be shown $tree"
	fi
}

run_one() { # OVER PROGRAM NAME, with PROFIL_TEST_DIR
	local program=$2 status=0 totals='' cgroup='' faults as=()

	isolate
	export PROFIL_TEST_OVER=${1:-replay}
	if test "$1" = user; then
		export PROFIL_TEST_OVER=replay
		test "$(id -u)" -ne 0 || as=(setpriv --reuid=61001 --regid=61001 --clear-groups env HOME="$PROFIL_TEST_DIR")
		test "$(id -u)" -ne 0 || { chown 61001:61001 "$PROFIL_TEST_DIR"; show_tree; }
	fi
	touch "$PROFIL_TEST_DIR"/{failures,lacks,unsure}
	if ! test -x "$2"; then
		fault "no such program: 'make tests' builds it"
	elif [[ $2 == *.sh ]]; then
		run_script "$2"
	else
		run_criterion "$2" "$PROFIL_TEST_OVER" "$3"
	fi
	test ! -x "$2" || test "$totals" || fault "ended with status $status and without its totals"
	read -r passed failed skipped unsure <<<"${totals:-0 0 0 0}"
	test "$status" -eq 0 || test "$failed" -ne 0 || test -z "$totals" ||
		fault "ended with status $status, but no test had failed"
	clear_up
	faults=$(grep -c "^FAIL $program: " "$PROFIL_TEST_DIR/failures")
	echo "$passed $((failed + faults)) $skipped ${unsure:-0}" >"$PROFIL_TEST_DIR/totals"
}

if test "${1:-}" = --one; then
	run_one "${@:2}"
	exit
fi

# --- which suites ---

# Says why the kernel suites cannot run here; prints nothing where they can.
kernel_lack() {
	if test "$(id -u)" -ne 0; then
		echo "needs root: sudo make test"
	elif ! test -r /sys/kernel/btf/vmlinux; then
		echo "this kernel has no /sys/kernel/btf/vmlinux: it needs CONFIG_DEBUG_INFO_BTF=y"
	elif ! unshare --mount mount -t bpf none /sys/fs/bpf 2>/dev/null; then
		echo "no bpffs can be mounted in a mount namespace of its own: it needs CAP_SYS_ADMIN and CONFIG_BPF_SYSCALL=y"
	fi
}

# The Criterion suites of a binary that run OVER, or all.
suites_of() { # OVER BINARY
	"$2" --list 2>/dev/null | sed -nE 's/^([a-z0-9_]+): [0-9]+ tests?$/\1/p' | case $1 in
	replay) grep -v '^kernel_' ;;
	kernel) grep '^kernel_' ;;
	*) cat ;;
	esac | sed "s|^|$1:$2:|"
}

each() { # PREFIX FILE...
	printf "$1%s\n" "${@:2}"
}

# The unit tests run as an ordinary user; as root, those suites that have tests that need it.
gate_unit() {
	local suites

	if test "$(id -u)" -ne 0; then
		each replay: "$BUILD/tests/unit-tests"
		return
	fi
	each user: "$BUILD/tests/unit-tests"
	suites=$(grep -rlE 'needs root|no mount namespace' tests/gate/unit | xargs sed -nE 's/^Test\(([a-z_0-9]+),.*/\1/p' | sort -u | paste -s -d '|')
	each replay: "$BUILD/tests/unit-tests:@($suites)"
}

gate_replay() {
	each replay: tests/gate/style.sh tests/gate/{both,replay}/*.sh
	suites_of replay "$BUILD/tests/gate-tests"
}

gate_kernel() {
	each kernel: tests/gate/{both,kernel}/*.sh
	suites_of kernel "$BUILD/tests/gate-tests"
	suites_of all "$BUILD/tests/kernel-tests" | sed 's/^all:/kernel:/'
}

# What "make quick" runs, as an ordinary user.
gate_user() {
	local suites

	test "$(id -u)" -eq 0 || return 0
	suites=$(mk/quick.sh) || return
	printf '%s' "${suites:+${suites//replay:/user:}$'\n'}"
}

# What a commit may break: the suites of the changed files, by mk/quick.
quick() {
	local suites

	suites=$(mk/quick.sh) || return
	each replay: "$BUILD/tests/unit-tests" tests/gate/style.sh
	printf '%s' "${suites:+$suites$'\n'}"
	test "$(id -u)" -ne 0 || gate_kernel | grep -E ':(kernel_(stop|exec|authorise|vectors)|synth_.*)$'
}

# These count and time, so nothing runs beside them.
night_alone() {
	suites_of kernel "$BUILD/tests/night-tests"
	suites_of replay "$BUILD/tests/night-tests"
	each kernel: tests/night/kernel/*.sh tests/night/hostile/*.sh
	echo replay:tests/night/hostile/faults.sh
}

night_rest() {
	each replay: tests/night/care/*.sh tests/night/fuzz/run.sh tests/gate/replay/{compilers,formats,stacks}.sh # with BOLT, a browser
	each '' tests/night/packages.sh tests/night/vm/run.sh tests/night/releases.sh
}

where() {
	(gate_unit; gate_replay; gate_user; gate_kernel) | sed 's/^/make test     /'
	(night_alone; night_rest) | sed 's/^/make nightly  /'
}

# --- the run ---

lacks='' hung='' net='' mounts=''
test "$(id -u)" -ne 0 || ! unshare --mount true 2>/dev/null || mounts=own # not root's in most containers
test "$(id -u)" -ne 0 || ! unshare --net ip link set lo up 2>/dev/null || net=own
passed=0 failed=0 skipped=0 unsure=0

# "P passed, F failed, S skipped", and how many are without a verdict, if any.
totals() { # PASSED FAILED SKIPPED UNSURE
	printf '%d passed, %d failed, %d skipped' "$1" "$2" "$3"
	test "$4" -eq 0 || printf ', %d without a verdict' "$4"
	echo
}

# Prints the suites with their time in the last run, the longest first; suites without one come before.
longest_first() {
	awk -v times="$times" 'BEGIN { while ((getline <times) > 0) s[$2] = $1 }
		{ print ($1 in s ? s[$1] : 10000) "\t" $1 }' | sort -rn -s -k1,1 | cut -f 2
}

begin_suite() { # SUITE
	local over='' program=$1 name='' apart=()

	case $1 in replay:* | kernel:* | user:*) over=${1%%:*} program=${1#*:} ;; esac
	case $program in *:*) name=${program#*:} program=${program%%:*} ;; esac
	n=$((n + 1))
	mkdir "$run/$n" && chmod 755 "$run/$n"
	test -z "$mounts" || apart=(unshare --mount)
	test -z "$over" || test -z "$net" || apart+=(--net) # what has no daemon fetches packages
	PROFIL_TEST_MOUNTS=$mounts PROFIL_TEST_NET=${over:+$net} PROFIL_TEST_ONLINE=/proc/$$/ns/net PROFIL_TEST_DIR=$run/$n setsid "${apart[@]}" "$0" --one "$over" "$program" "$name" >"$run/$n.log" 2>&1 </dev/null &
	job[$!]=$n suite[n]=$1 began[n]=$SECONDS
}

end_suite() { # PID
	local n=${job[$1]} p=0 f=1 s=0 u=0 took cpu_us=0

	unset "job[$1]"
	took=$((SECONDS - began[n]))
	test ! -s "$run/$n/cpu_us" || read -r cpu_us <"$run/$n/cpu_us"
	printf '== %s\n' "${suite[n]}"
	cat "$run/$n.log"
	test ! -e "$run/$n/totals" || read -r p f s u <"$run/$n/totals"
	printf '   %s (%d s, %d s of CPU)\n' "$(totals "$p" "$f" "$s" "$u")" "$took" $((cpu_us / 1000000))
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s)) unsure=$((unsure + u))
	test -e "$run/$n/totals" || echo "FAIL ${suite[n]}: its runner was killed" >"$run/$n/failures"
	suite=${suite[n]} awk '{ print ENVIRON["suite"] ": " $0 }' "$run/$n/failures" >>"$run/failures"
	suite=${suite[n]} awk '{ print ENVIRON["suite"] ": " $0 }' "$run/$n/lacks" >>"$run/lacks"
	suite=${suite[n]} awk '{ print ENVIRON["suite"] ": " $0 }' "$run/$n/unsure" >>"$run/unsure"
	echo "$took ${suite[n]}" >>"$run/times"
	rm -rf "${run:?}/$n"
}

# Prints PID and the processes below it.
family() { # PID
	local child children

	echo "$1"
	read -r -d '' -a children < <(cat "/proc/$1/task/"*/children)
	for child in "${children[@]}"; do
		family "$child"
	done
}

# A test's process has a session of its own, so the suite's process group is not all of it.
kill_suites() {
	local pid cgroups

	cgroups=$(findmnt -n -o TARGET -t cgroup2 | head -n 1)
	for pid in "${!job[@]}"; do
		# shellcheck disable=SC2046 # one word for each process
		kill -KILL $(family "$pid") -- "-$pid"
		test ! -e "$cgroups/profil-test.$pid" || echo 1 >"$cgroups/profil-test.$pid/cgroup.kill"
		wait "$pid"
		rmdir "$cgroups/profil-test.$pid"
		unset "job[$pid]"
	done 2>/dev/null
}

# Names what runs, with the end of its output and its processes.
tell_hang() { # WHY
	local pid i

	hung=$1
	printf '== no verdict: %s\n' "$1"
	for pid in "${!job[@]}"; do
		i=${job[$pid]}
		printf 'hangs for %d s: %s\n' $((SECONDS - began[i])) "${suite[i]}"
		echo "${suite[i]}: no verdict the suite: $1" >>"$run/unsure"
		tail -n 3 "$run/$i.log"
		ps -o pid,ppid,etime,stat,wchan:20,args -s "$pid"
	done
}

# Runs the suites on standard input.
run_suites() {
	local queue next=0 ticker ended size last='' moved=$SECONDS

	mapfile -t queue < <(longest_first)
	sleep 5 & ticker=$!
	while test $next -lt ${#queue[@]} || test ${#job[@]} -gt 0; do
		while test $next -lt ${#queue[@]} && test ${#job[@]} -lt "$workers"; do
			begin_suite "${queue[next]}"
			next=$((next + 1))
		done
		wait -n -p ended
		if test "$ended" != "$ticker"; then
			end_suite "$ended"
			moved=$SECONDS
			continue
		fi
		sleep 5 & ticker=$!
		size=$(stat -c %s "$run"/*.log | paste -s)
		test "$size" = "$last" || moved=$SECONDS
		last=$size
		if test $((SECONDS - moved)) -ge "$silence_s"; then
			tell_hang "no test ended for $silence_s s"
		elif test "$SECONDS" -ge "$total_s"; then
			tell_hang "not finished after $total_s s"
		fi
		test -z "$hung" || break
	done
	kill "$ticker" 2>/dev/null
	kill_suites
}

show() { # TITLE FILE
	test ! -s "$2" || { printf '== %s\n' "$1"; cat "$2"; }
}

# The suites by name; of a Criterion binary of many, each.
named() { # SUITE...
	local s

	for s; do
		case $s in
		*/gate-tests | */night-tests) case $s in *:*) suites_of "${s%%:*}" "${s#*:}" ;; *) suites_of replay "$s" ;; esac ;;
		*) echo "$s" ;;
		esac
	done
}

# Prints the clock ticks that the CPUs of this machine have had, and of those the host's other guests.
cpu_times() {
	awk '/^cpu / { for (i = 2; i <= 9; i++) all += $i; print all, $9 }' /proc/stat
}

our_git() { # as root, too, in a user's clone
	git -c safe.directory="$PWD" "$@" 2>/dev/null
}

# Enters the night, or the part of it that has run, into tests/NIGHTLY.
enter_night() { # night|part
	local commit all stolen

	commit=$(our_git rev-parse --short=12 HEAD || echo 0000000)
	test -z "$(our_git status --porcelain --untracked-files=no -- . ':!tests/NIGHTLY')" || commit+=+
	read -r all stolen < <(cpu_times)
	all=$((all - night_cpu[0])) stolen=$((stolen - night_cpu[1]))
	cut -d ' ' -f 2 "$run/times" >"$run/ran"
	python3 tests/lib/nightly.py append "$record" "$1" "$commit $night_from $(date -u +%FT%H:%MZ): Linux $(uname -r), $(nproc) CPUs, $(
		awk -v s="$stolen" -v a="$all" 'BEGIN { printf "%.1f", a ? 100 * s / a : 0 }') % steal: $(
		totals "$passed" "$failed" "$skipped" "$unsure")" "$run/failures" \
		<(cat "$run/unsure" "$run/lacks") "$run/ran"
}

# Runs all of the night, or SUITES. The log is kept.
night() { # [SUITE...]
	local kind=night

	export PROFIL_TEST_WORKERS=1
	workers=1
	mkdir -p "$BUILD/nightly"
	night_from=$(date -u +%FT%H:%MZ)
	read -r -a night_cpu < <(cpu_times)
	exec > >(tee "$BUILD/nightly/$night_from.log")
	trap 'kill_suites; enter_night part; exit 130' INT TERM
	if test $# -gt 0; then
		kind=part
		run_suites < <(named "$@")
	else
		run_suites < <(night_alone)
		test "$hung" || run_suites < <(night_rest)
	fi
	test -z "$hung" || kind=part
	trap 'exit 130' INT TERM
	enter_night "$kind"
}

run=$(mktemp -d "${TMPDIR:-/tmp}/profil-test.XXXXXX") || exit 1
chmod 755 "$run"
touch "$run"/{failures,lacks,unsure,times}
declare -A job=()
suite=() began=() n=0
trap 'kill_suites; rm -rf "$run"' EXIT
trap 'exit 130' INT TERM
times=$BUILD/tests/times
record=${PROFIL_TEST_NIGHTLY:-tests/NIGHTLY}

case ${1:?usage: tests/run.sh quick|gate|night|--where|SUITE...} in
--where)
	where
	exit
	;;
quick)
	export PROFIL_TEST_BY_DAY=1 PROFIL_TEST_CHANGED=1 # style.sh looks at the changed files
	run_suites < <(quick)
	;;
gate)
	export PROFIL_TEST_BY_DAY=1
	lacks=$(kernel_lack)
	test -z "$lacks" || echo "skip the kernel suites: $lacks" | tee -a "$run/lacks"
	run_suites < <(gate_unit; gate_replay; gate_user; test "$lacks" || gate_kernel)
	;;
night)
	silence_s=${PROFIL_TEST_SILENCE_S:-7200} total_s=86400
	test $# -gt 1 || lacks=$(kernel_lack)
	test -z "$lacks" || { echo "skip the night: $lacks"; exit 2; }
	night "${@:2}"
	;;
*)
	silence_s=${PROFIL_TEST_SILENCE_S:-7200} total_s=86400
	run_suites < <(named "$@")
	;;
esac

# Each suite keeps its last time; a run that is part of a test keeps none.
if test -z "${PROFIL_TEST_DIR:-}"; then
	cat "$times" "$run/times" 2>/dev/null | awk '{ s[$2] = $1 } END { for (x in s) print s[x], x }' >"$run/merged"
	cp "$run/merged" "$times" 2>/dev/null
fi
show 'what is missing' "$run/lacks"
show 'what is without a verdict' "$run/unsure"
show 'what failed' "$run/failures"
test -z "$hung" || echo "no verdict: machine too slow, or hang: $hung"
test "$1" != gate || python3 tests/lib/nightly.py age "$record" "$(date -u +%F)"
totals "$passed" "$failed" "$skipped" "$unsure"
test -z "$hung" || exit 2
test "$failed" -eq 0 || exit 1
test "$unsure" -eq 0 || exit 2
test "$passed" -gt 0 || exit 1
test ! -s "$run/lacks" || test "${PROFIL_TEST_ALLOW_SKIP:-0}" = 1 || exit 2
