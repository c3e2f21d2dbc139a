#!/bin/bash
# machine.sh - the part of the benchmark that is about the profile of the whole machine
#
# As in parts.sh: part_machine is one round. What a sample takes is measured while a real-time process
# keeps each CPU, so that caches are warm and the rest of the machine waits.
# shellcheck disable=SC2154 # lib.sh sets what is used here

part_machine_begin() {
	old_stats=$(sysctl -n kernel.bpf_stats_enabled)
	sysctl -q kernel.bpf_stats_enabled=1
	daemon_start machine --fast-rate 4999
	find_tick_event
	daemon_start mixed --rate 199
	memory_over_time
}

part_machine_end() {
	sysctl -q kernel.bpf_stats_enabled="$old_stats"
}

# Keeps every CPU for $SECONDS_EACH, each by a program of its own, or their counters would be the same,
# which is a matter of two CPUs; puts down the holes that one on $CPU sees.
on_all_cpus() { # SUBJECT CALL
	local cpu pids=()

	for ((cpu = 0; cpu < $(nproc); cpu++)); do
		cp "$work" "$dir/work.$cpu"
		LD_PRELOAD=${2:+$library} BENCH_CALL=${2:-none} BENCH_CPU=$cpu \
			"$dir/work.$cpu" gaps "$SECONDS_EACH" >"$dir/gaps.$cpu" &
		pids+=($!)
	done
	wait "${pids[@]}"
	numbers_of machine "$1" <"$dir/gaps.$CPU"
}

# The daemon loads the program when it is first needed.
find_tick_event() {
	use_daemon machine
	"$ctl" machine on -F 4999 2>/dev/null
	find_program "$daemon" tick_event
	"$ctl" machine off
	clocks_gone machine
}

# Where the kernel tells the runs and nanoseconds of our program: to ask bpftool each time would be a
# good part of what is measured.
find_program() { # PID NAME
	local file id

	program=''
	for file in "/proc/$1/fdinfo/"*; do
		id=$(awk '/^prog_id:/ { id = $2 } /^run_cnt:/ { print id }' "$file" 2>/dev/null) # no link
		if test "$id" && test "$("$BPFTOOL" -j prog show id "$id" | jq -r .name)" = "$2"; then
			program=$file
			return
		fi
	done
	echo "bench: machine: the run time of $2 is not measured: the daemon has no such program" >&2
}

runs_on_all_cpus() { # SUBJECT CALL
	local before after value

	if test -z "$program"; then
		on_all_cpus "$1" "$2"
		return
	fi
	before=$(awk '/^run_(time_ns|cnt):/ { printf "%d ", $2 }' "$program")
	on_all_cpus "$1" "$2"
	after=$(awk '/^run_(time_ns|cnt):/ { printf "%d ", $2 }' "$program")
	value=$(echo "$before" "$after" | awk '$4 > $2 { printf "%.2f", ($3 - $1) / ($4 - $2) }')
	test -z "$value" || number machine "$1" run_ns "$value"
}

what_a_sample_takes() {
	use_daemon machine
	peer_start floor 4999 0
	on_all_cpus floor ''
	peer_stop floor
	number machine floor run_ns "$(awk '/^run_ns/ { print $2 }' "$dir/floor.out")"
	runs_on_all_cpus hit fast
	clocks_gone machine
	"$ctl" machine on -F 4999 2>/dev/null
	runs_on_all_cpus machine ''
	"$ctl" machine off
	clocks_gone machine
}

# CPU time of all threads of a process and of those that have ended, in ns.
all_cpu_ns() { # PID
	awk '{ n += $1 } END { print n }' "/proc/$1"/task/*/schedstat
}

# What a process has written to files, in bytes.
written() { # PID
	awk '/^write_bytes/ { print $2 }' "/proc/$1/io"
}

# User and system time of a command, in ns; what it says goes nowhere.
time_of() { # COMMAND...
	local TIMEFORMAT='%3U %3S'

	{ time "$@" >/dev/null 2>&1; } 2>&1 | awk '{ printf "%d\n", ($1 + $2) * 1e9 }'
}

# Ten seconds of the machine, from the request to the table that could be read.
mixed_profil() {
	local pid=${daemon_of[mixed]} cpu wrote on off

	cpu=$(all_cpu_ns "$pid") wrote=$(written "$pid")
	use_daemon mixed
	on=$(time_of "$ctl" machine on)
	sleep "$MIX_S"
	number machine profil samples "$("$ctl" machine status --json | jq .total)"
	off=$(time_of "$ctl" machine off)
	number machine profil cpu_ns $(($(all_cpu_ns "$pid") - cpu + on + off))
	number machine profil daemon_cpu_ns $(($(all_cpu_ns "$pid") - cpu))
	number machine profil written_bytes $(($(written "$pid") - wrote))
	clocks_gone mixed
}

mixed_perf() {
	local pid

	have perf || return 0
	number machine perf-a cpu_ns "$(time_of perf record -q -e cpu-clock -F 199 -a --no-bpf-event \
		-o "$dir/perf.data" -- sleep "$MIX_S")"
	number machine perf-a written_bytes "$(stat -c %s "$dir/perf.data")"
	number machine perf-a samples "$(perf script -i "$dir/perf.data" -F pid 2>/dev/null | awk '$1 > 0' | wc -l)"
}

with_mix() { # COMMAND...
	setsid tests/night/bench/mix.sh storm >/dev/null 2>&1 &
	mix=$!
	sleep 2 # all of it runs
	"$@"
	kill -TERM -- "-$mix" 2>/dev/null
	wait "$mix" 2>/dev/null
}

mixed_both() {
	mixed_profil
	mixed_perf
}

part_machine() {
	what_a_sample_takes
	with_mix mixed_both
}

# --- memory, once ---------------------------------------------------------------------------------

# What the kernel says its maps take.
table_kib() { # PID
	cat "/proc/$1/fdinfo/"* 2>/dev/null | awk '
		/^memlock:/ { bytes = $2 }
		/^map_id:/ && !seen[$2]++ { n += bytes }
		END { printf "%d\n", n / 1024 }'
}

memory_now() { # PART DAEMON WHEN
	number "$1" memory "resident_kib_$3" "$(resident_kib "${daemon_of[$2]}")"
	number "$1" memory "kernel_kib_$3" "$(table_kib "${daemon_of[$2]}")"
	test -z "$peer_pid" || number "$1" memory "profilctl_kib_$3" "$(resident_kib "$peer_pid")"
}

memory_over_time() {
	use_daemon mixed
	"$ctl" machine on 2>/dev/null
	with_mix memory_in_mix machine mixed
	"$ctl" machine off
	clocks_gone mixed
}

memory_in_mix() { # PART DAEMON
	sleep "$MIX_S"
	memory_now "$@" early
	sleep "$MEMORY_S"
	memory_now "$@" late
}
