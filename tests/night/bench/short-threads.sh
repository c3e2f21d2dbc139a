#!/bin/bash
# short-threads.sh - samples of threads of a few ticks, as a ratio of those due, beside perf's, as root
#
# usage: tests/night/bench/short-threads.sh [ROUNDS]
#
# Threads of 1, 2.5, 4 and 6 ticks of CPU time, one after the other, 2 s in all, are recorded at 100 Hz
# by profil, by "perf record" and by "perf record -a", in turns, beside 0, 2 and 4 endless loops. Printed
# are medians of the rounds: samples / (CPU time * 100 Hz), of which 1 is right. (Without -a perf begins
# a period anew in each thread, so that a thread shorter than a period has no sample at all.)
set -u
cd "$(dirname "$0")/../../.." || exit 1

BUILD=${BUILD:-build}
rounds=${1:-3}
dir=$(mktemp -d "${TMPDIR:-/tmp}/profil-short.XXXXXX") || exit 1
hogs=()
trap 'kill "${hogs[@]}" 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

cat >"$dir/threads.c" <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long cpu_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void *work(void *ns)
{
	volatile long x = 0;

	do
		for (int i = 0; i < 5000; i++)
			x += i;
	while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < *(long long *)ns);
	return NULL;
}

/* usage: threads FILE US: writes the CPU time in seconds to FILE */
int main(int argc, char **argv)
{
	long long ns = atoll(argv[2]) * 1000;
	FILE *out = fopen(argv[1], "w");

	for (long long i = 0; i < 2000000000 / ns; i++) {
		pthread_t t;

		pthread_create(&t, NULL, work, &ns);
		pthread_join(t, NULL);
	}
	fprintf(out, "%f\n", cpu_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9);
	return fclose(out);
}
C
gcc -O1 -pthread -o "$dir/threads" "$dir/threads.c" || exit 1
tick_us=$((1000000 / $(zcat /proc/config.gz 2>/dev/null | sed -n 's/^CONFIG_HZ=//p' | grep . || echo 250)))

ratio() { # SAMPLES: of the last run
	awk -v n="$1" '{ printf "%.3f\n", n / $1 / 100 }' "$dir/used"
}

by_profil() { # US
	"$BUILD/profilctl" record -F 100 -q -f json -o "$dir/json" -- "$dir/threads" "$dir/used" "$1" 2>/dev/null
	ratio "$(jq .samples.total "$dir/json")"
}

by_perf() { # US OPTION...
	perf record -q -e cpu-clock -F 100 -o "$dir/data" "${@:2}" -- "$dir/threads" "$dir/used" "$1" >/dev/null 2>&1
	ratio "$(perf script -i "$dir/data" -F comm 2>/dev/null | grep -c threads)"
}

median() { sort -n | awk '{ v[NR] = $1 } END { printf "%.2f (%.2f to %.2f)", v[int((NR + 1) / 2)], v[1], v[NR] }'; }

printf '%-8s %-8s %-24s %-24s %-24s\n' loops ticks profil 'perf record' 'perf record -a'
for n in 0 2 4; do
	hogs=()
	for ((i = 0; i < n; i++)); do
		sh -c 'while :; do :; done' &
		hogs+=($!)
	done
	for tenths in 10 25 40 60; do
		us=$((tick_us * tenths / 10))
		rm -f "$dir"/by-*
		for ((i = 0; i < rounds; i++)); do
			by_profil "$us" >>"$dir/by-profil"
			by_perf "$us" >>"$dir/by-perf"
			by_perf "$us" -a >>"$dir/by-perf-a"
		done
		printf '%-8s %-8s %-24s %-24s %-24s\n' "$n" "${tenths%?}.${tenths#?}" "$(median <"$dir/by-profil")" \
			"$(median <"$dir/by-perf")" "$(median <"$dir/by-perf-a")"
	done
	test ${#hogs[@]} -eq 0 || kill "${hogs[@]}"
	wait "${hogs[@]}" 2>/dev/null
done
