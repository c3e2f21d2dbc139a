#!/bin/bash
# parts.sh - each part of the benchmark: one round of it
#
# part_NAME_begin and part_NAME_end are run once where they are there, part_NAME once in a round.
# shellcheck source=tests/night/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# --- overhead: what a loop loses, as it sees itself -----------------------------------------------

part_overhead_begin() {
	local hz

	for hz in $RATES; do
		daemon_start "overhead-$hz" --rate "$hz" --fast-rate "$hz"
	done
}

# The ways in which a process profiles itself; each is a BENCH_CALL and what to preload.
self_profilers() {
	echo "profil sprofil $library"
	echo "glibc-profil profil"
	echo "glibc-sprofil sprofil"
	if test -n "$GPERFTOOLS"; then echo "gperftools none $GPERFTOOLS"; fi
}

part_overhead() {
	local hz peer call preload

	for hz in $RATES; do
		use_daemon "overhead-$hz"
		for peer in $(peers_present); do
			test "$peer" = profil ||
				BENCH_CPU=$CPU watched "overhead-$hz" "$peer" "$peer" "$hz" gaps "$SECONDS_EACH"
		done
		while read -r peer call preload; do
			LD_PRELOAD=$preload BENCH_CALL=$call BENCH_CPU=$CPU CPUPROFILE=$dir/cpuprofile \
				CPUPROFILE_FREQUENCY=$hz "$work" gaps "$SECONDS_EACH" 2>/dev/null |
				numbers_of "overhead-$hz" "$peer"
			clocks_gone "overhead-$hz"
		done < <(self_profilers)
		GMON_OUT_PREFIX=$dir/gmon "$work.gprof" gaps "$SECONDS_EACH" |
			numbers_of "overhead-$hz" gprof
	done
}

# --- handler: what runs when the event's timer has expired ----------------------------------------

# The interrupt around it takes fifty times as long, and differs by more than all that a profiler adds.

part_handler_begin() {
	local hz

	handler=$(awk '$3 == "perf_swevent_hrtimer" { print $1 }' /proc/kallsyms)
	for hz in 1000 9999; do
		daemon_start "handler-$hz" --rate "$hz" --fast-rate "$hz"
	done
}

# Prints how often it took how many nanoseconds on the CPU under a process of each name, until it is
# interrupted.
handler_times() {
	exec unshare -m sh -c "mountpoint -q /sys/kernel/tracing ||
		mount -t tracefs none /sys/kernel/tracing; exec bpftrace -f json -e '
		tracepoint:timer:hrtimer_expire_entry /cpu == $CPU && args->function == 0x$handler/ {
			@begun = nsecs;
		}
		tracepoint:timer:hrtimer_expire_exit /cpu == $CPU && @begun/ {
			@ns[comm] = lhist(nsecs - @begun, 0, 4000, 4);
			@begun = 0;
		}'" 2>/dev/null
}

# A turn is short, and there are many: a quiet minute of the machine, or a busy one, is everybody's,
# and so are the moments at which two CPUs' events come, which differ from start to start.
handler_turn() { # HZ PEER
	local pid

	ln -sf "$work" "$dir/$2"
	BENCH_STOP=1 BENCH_CPU=$CPU "$dir/$2" hits 0 &
	pid=$!
	until_true state_is "$pid" T
	peer_start "$2" "$1" "$pid"
	kill -CONT "$pid"
	sleep "$HANDLER_S"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	peer_stop "$2"
	clocks_gone "handler-$1"
}

# The median of each peer's turns, and what that is beyond the floor's in the same minute.
handler_medians() {
	jq -r 'select(.type == "hist").data["@ns"]
		| {floor, profil, "perf-p"} | map_values(values
			| (map(.count // 0) | add / 2) as $half
			| reduce .[] as $b ({n: 0}; .n += ($b.count // 0)
				| if .at == null and .n >= $half then .at = $b.min + 2 else . end) | .at)
		| .floor as $floor | to_entries[]
		| .key, "run_ns", .value, (select(.key != "floor") | .key, "added_ns", .value - $floor)' |
		paste - - -
}

part_handler() {
	local hz peer turn metric ns

	if ! have bpftrace || test -z "$handler"; then
		echo "bench: handler: not measured: it takes bpftrace, and perf_swevent_hrtimer in /proc/kallsyms" >&2
		return
	fi
	for hz in 1000 9999; do
		use_daemon "handler-$hz"
		handler_times >"$dir/times" &
		times_pid=$!
		if ! until_true has_events "$times_pid"; then
			echo "bench: handler: not measured: bpftrace does not attach to timer:hrtimer_expire_entry" >&2
			return
		fi
		for ((turn = 0; turn < HANDLER_TURNS; turn++)); do
			for peer in $(peers_present); do
				case $peer in floor | profil | perf-p) handler_turn "$hz" "$peer" ;; esac
			done
		done
		kill -INT "$times_pid" # once: asked again, it leaves without its numbers
		wait "$times_pid"
		times_pid=''
		handler_medians <"$dir/times" >"$dir/medians"
		test -s "$dir/medians" || echo "bench: handler: bpftrace saw no timer at $hz Hz" >&2
		while read -r peer metric ns; do
			number "handler-$hz" "$peer" "$metric" "$ns"
		done <"$dir/medians"
	done
}

# --- inherit: programs that fork, and that switch, all their time ---------------------------------

# On one CPU: what it takes to wake another, that is asleep, depends on whether a profiler keeps it
# awake.

part_inherit_begin() {
	daemon_start inherit --rate 1000
}

part_inherit() {
	local peer

	for peer in $(peers_present); do
		BENCH_CPU=$CPU watched forks "$peer" "$peer" 1000 forks "$FORKS"
		clocks_gone inherit
		BENCH_CPU=$CPU watched switches "$peer" "$peer" 1000 switches "$SWITCHES"
		clocks_gone inherit
	done
}

# --- asleep: timer interrupts of the whole machine ------------------------------------------------

timer_interrupts() {
	awk '$1 == "LOC:" || / arch_timer/ { for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) n += $i }
		END { print n }' /proc/interrupts
}

# Puts down the interrupts in a second, and how often profild is woken all the while, once all is set up.
interrupts_during() { # SUBJECT
	local before woken after

	sleep 1
	before=$(timer_interrupts) woken=$(wakeups "$daemon")
	sleep "$ASLEEP"
	after=$(timer_interrupts)
	number asleep "$1" interrupts_per_s "$(((after - before) / ASLEEP))"
	number asleep "$1" wakeups "$(($(wakeups "$daemon") - woken))"
}

at_rest() {
	local before

	before=$(wakeups "$daemon")
	sleep 1
	test "$(wakeups "$daemon")" = "$before"
}

part_asleep_begin() {
	daemon_start asleep --rate 250
}

part_asleep() {
	local pid peer

	sleep 1000000 &
	pid=$!
	for peer in $(peers_present); do
		peer_start "$peer" 250 "$pid"
		interrupts_during "$peer"
		peer_stop "$peer"
		clocks_gone asleep
	done
	kill "$pid"
	wait "$pid" 2>/dev/null
	fleet_with "$FLEET" interrupts_during fleet
	clocks_gone asleep
	until_true at_rest # it gives back what the fleet had, little by little
}

# --- program: the BPF program by the kernel's own statistics --------------------------------------

part_program_begin() {
	old_stats=$(sysctl -n kernel.bpf_stats_enabled)
	sysctl -q kernel.bpf_stats_enabled=1
	daemon_start program --fast-rate 9999
}

part_program_end() {
	sysctl -q kernel.bpf_stats_enabled="$old_stats"
}

# Keeps a CPU busy with REGIONS regions for as long as the command takes: one, for two may be two
# halves of a core, which slow each other down.
busy_with() { # REGIONS COMMAND...
	local regions=$1 pid

	shift
	LD_PRELOAD=$library BENCH_CALL=fast BENCH_STOP=1 BENCH_CPU=$CPU "$work" hits "$regions" &
	pid=$!
	until_true state_is "$pid" T
	kill -CONT "$pid"
	"$@"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
}

runs_during() { # SUBJECT
	local before after

	before=$(program_runs "$daemon" tick_event)
	sleep "$SECONDS_EACH"
	after=$(program_runs "$daemon" tick_event)
	number program "$1" run_ns "$(echo "$before $after" |
		awk '{ runs = $3 - $1; printf "%.2f", runs ? ($4 - $2) / runs : 0 }')"
}

floor_during() {
	peer_start floor 9999 0
	sleep "$SECONDS_EACH"
	peer_stop floor
	number program floor run_ns "$(awk '/^run_ns/ { print $2 }' "$dir/floor.out")"
}

part_program() {
	local regions pid

	for regions in 1 16 256 4096; do
		busy_with "$regions" runs_during "hit-$regions"
		clocks_gone program # and the counters are free again
	done
	LD_PRELOAD=$library BENCH_CALL=fast BENCH_STOP=1 "$work" hits 1 &
	pid=$!
	until_true state_is "$pid" T
	busy_with 0 runs_during miss
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	clocks_gone program
	busy_with 0 floor_during
}

# --- idle: nothing is profiled --------------------------------------------------

wakeups() { # PID
	awk '/^voluntary_ctxt_switches/ { print $2 }' "/proc/$1/status"
}

part_idle_begin() {
	daemon_start idle
}

part_idle() {
	local before

	LD_PRELOAD=$library BENCH_CALL=sprofil "$work" gaps 0.1 >/dev/null
	clocks_gone idle
	before=$(wakeups "$daemon")
	sleep "$IDLE"
	number idle profild wakeups "$(($(wakeups "$daemon") - before))"
	number idle profild links "$(find "/proc/$daemon/fd" -lname '*bpf_link*' -o -lname '*bpf-link*' \
		-o -lname '*perf_event*' | wc -l)"
}

# --- mirror: from the counters to the buffers -----------------------------------------------------

cpu_ns() { # PID
	awk '{ print $1 }' "/proc/$1/schedstat"
}

part_mirror_begin() {
	daemon_start mirror-once --fast-rate 10000 --mirror-interval 60000
	daemon_start mirror --fast-rate 10000
}

# Puts down profild's CPU time in a second, of ten passes.
mirror_during() { # SUBJECT SECONDS
	local before began

	before=$(cpu_ns "$daemon") began=$(date +%s%N)
	sleep "$2"
	number mirror "$1" ns_per_s "$((($(cpu_ns "$daemon") - before) * 1000 /
		(($(date +%s%N) - began) / 1000000)))"
}

# A process whose ticks fall evenly on all its bins: stopped first, then for six seconds. In the
# first ones the pages of its buffer are new, and profild takes their page faults, once.
sled_with() { # SUBJECT CALL
	local pid

	LD_PRELOAD=$library BENCH_CALL=$2 BENCH_CPU=$CPU BENCH_STOP=1 "$work" sled 6 >"$dir/sled.out" &
	pid=$!
	until_true state_is "$pid" T
	mirror_during "$1-unchanged" 1
	kill -CONT "$pid"
	mirror_during "$1-new" 1
	sleep 1
	mirror_during "$1-changing" 3
	wait "$pid"
	number mirror "$1" ticks_per_s "$(awk '/^ticks/ { print $2 / 6 }' "$dir/sled.out")"
}

# All that a profile costs profild when its counts reach the buffer once, at its end.
once_after() { # SUBJECT SECONDS
	local before

	use_daemon mirror-once
	before=$(cpu_ns "${daemon_of[mirror-once]}")
	LD_PRELOAD=$library BENCH_CALL=fast BENCH_CPU=$CPU "$work" sled "$2" >"$dir/sled.out"
	number mirror "$1" cpu_ns "$(($(cpu_ns "${daemon_of[mirror-once]}") - before))"
	number mirror "$1" changed "$(awk '/^changed/ { print $2 }' "$dir/sled.out")"
	use_daemon mirror
}

# N processes that are profiled and sleep, for as long as the command takes.
fleet_with() { # N COMMAND...
	local n=$1 out in

	shift
	rm -f "$dir/fleet.in" "$dir/fleet.out"
	mkfifo "$dir/fleet.in" "$dir/fleet.out"
	LD_PRELOAD=$library BENCH_CALL=sprofil "$work" fleet "$n" <"$dir/fleet.in" >"$dir/fleet.out" &
	exec {in}>"$dir/fleet.in" {out}<"$dir/fleet.out"
	read -r _ <&"$out"
	"$@"
	exec {in}>&- {out}<&-
	wait $!
}

resident_kib() { # PID
	awk '/^VmRSS/ { print $2 }' "/proc/$1/status"
}

part_mirror() {
	BENCH_CPU=$CPU "$work" gaps 7 >/dev/null & # a machine that is all idle wakes up at twice the cost
	"$passes" 3 0 | numbers_of mirror wakeups
	"$passes" 3 10 | numbers_of mirror calls-alone
	wait $!
	once_after once-nothing 0
	once_after once-most "$MANY_S"
	sled_with fast fast
	sled_with one sprofil
	fleet_with "$FLEET" sled_with many sprofil
	number mirror fleet profiles "$FLEET"
}

# --- calls: profil() on and off, and profild's own size -------------------------------------------

part_calls() {
	local began

	began=$(date +%s%N)
	daemon_start "calls-$round"
	number calls profild start_ms "$((($(date +%s%N) - began) / 1000000))"
	resident=$(resident_kib "$daemon")
	number calls profild resident_kib "$resident"
	BENCH_CPU=$CPU "${work%/*}/connect" 1000 | numbers_of calls bare
	calls_on "$CPU" alone
	fleet_with "$FLEET" calls_among
	kill "$daemon"
	wait "$daemon"
	unset 'daemons[-1]'
}

calls_among() {
	number calls among bytes_a_bin "$(awk -v k="$(resident_kib "$daemon")" -v before="$resident" \
		-v n="$FLEET" 'BEGIN { print (k - before) * 1024 / 65536 / n }')"
	calls_on "$CPU" among
	calls_on 0 among-apart
}

# profild and its workers stay on the CPU of its callers, or on another: to wake an idle CPU of
# a virtual machine takes longer than the call, and there are four turns to a call.
calls_on() { # PROFILD_CPU SUBJECT
	local pid

	for pid in "$daemon" $(pgrep -P "$daemon"); do
		taskset -cp "$1" "$pid" >/dev/null
	done
	LD_PRELOAD=$library BENCH_CALL=sprofil BENCH_CPU=$CPU "$work" calls 1000 | numbers_of calls "$2"
}

# --- delivered: ticks that come, and where they fall ----------------------------------------------

part_delivered_begin() {
	local hz

	for hz in 10 100 250 1000 4000 10000; do
		daemon_start "delivered-$hz" --rate "$hz" --fast-rate "$hz"
	done
}

part_delivered() {
	local hz

	for hz in 10 100 250 1000 4000 10000; do
		use_daemon "delivered-$hz"
		LD_PRELOAD=$library BENCH_CALL=sprofil "$work" split "$SPLIT" | numbers_of "delivered-$hz" profil
	done
	use_daemon delivered-10000
	LD_PRELOAD=$library BENCH_CALL=sprofil "$work" pair "$SECONDS_EACH" | numbers_of delivered-10000 pair
	BENCH_CALL=fast "$work" split "$SPLIT" | numbers_of delivered-1000 glibc-sprofil
	test -n "$GPERFTOOLS" && have google-pprof || return 0
	LD_PRELOAD=$GPERFTOOLS CPUPROFILE=$dir/cpuprofile CPUPROFILE_FREQUENCY=4000 \
		"$work" gaps "$SECONDS_EACH" >/dev/null 2>&1
	number delivered-4000 gperftools delivered "$(google-pprof --text "$work" "$dir/cpuprofile" 2>/dev/null |
		awk -v s="$SECONDS_EACH" '/^Total:/ { print $2 / 4000 / s }')"
}

# --- accuracy: what a clock sees of work of different rhythms --------------------------------------

part_accuracy_begin() {
	local clock

	for clock in tick cpu-clock; do
		daemon_start "accuracy-$clock" --rate 250 --clock "$clock"
	done
}

# perf's own counts, in the same terms.
accuracy_of_perf() { # KIND
	local pid

	BENCH_STOP=1 "$work" "$1" "$SPLIT" >"$dir/work.out" &
	pid=$!
	until_true state_is "$pid" T
	peer_start perf-p 997 "$pid"
	kill -CONT "$pid"
	wait "$pid"
	peer_stop perf-p
	perf script -i "$dir/perf.data" -F ip,sym 2>/dev/null |
		awk -v cpu="$(awk '/^cpu_s/ { print $2 }' "$dir/work.out")" \
			-v shares="$(awk '/^share_/ { printf "%s ", $2 }' "$dir/work.out")" '
		{ n++; count[$2]++ }
		END {
			split(shares, share)
			split("often sometimes seldom", name)
			for (i = 1; i <= 3; i++) inside += count[name[i]]
			for (i = 1; i <= 3; i++) {
				error = inside ? count[name[i]] / inside - share[i] : 0
				if (error < 0) error = -error
				if (error > worst) worst = error
			}
			print "delivered", n / 997 / cpu
			print "ticks", n
			print "error", worst + 0
		}' | numbers_of "accuracy-$1" perf-997
}

part_accuracy() {
	local kind clock

	for kind in split woken4ms woken1300us served; do
		for clock in tick cpu-clock; do
			use_daemon "accuracy-$clock"
			LD_PRELOAD=$library BENCH_CALL=sprofil "$work" "$kind" "$SPLIT" |
				numbers_of "accuracy-$kind" "$clock"
			clocks_gone "accuracy-$clock"
		done
		if have perf; then accuracy_of_perf "$kind"; fi
	done
}

# --- bytes: of a profile that goes on ------------------------------------------------------------

# Once is enough: there is no noise in it.
part_bytes() { :; }

part_bytes_begin() {
	local seconds

	for seconds in $BYTES_AFTER; do
		"$ctl" record -F 1000 -o "$dir/profil.out" -- "$work" gaps "$seconds" >/dev/null 2>&1
		number bytes profil "after_${seconds}s" "$(stat -c %s "$dir/profil.out")"
		have perf || continue
		perf record -q -F 1000 -o "$dir/perf.data" "$work" gaps "$seconds" >/dev/null 2>&1
		number bytes perf "after_${seconds}s" "$(stat -c %s "$dir/perf.data")"
	done
}
