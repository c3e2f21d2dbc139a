#!/bin/bash
# run.sh - runs each fuzzer for FUZZ_S seconds, two at a time, starting with the seeds in corpus/
#
# The fuzzers are in build/fuzz/. Inputs that make one fail are kept in build/fuzz-found/.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

seconds=${FUZZ_S:-60}
found=build/fuzz-found
BUILD=build/fuzz
mkdir -p "$found"
if ! make --no-print-directory -j"$(nproc)" fuzz-build >"$dir/make.log" 2>&1; then
	fail "the fuzzers compile" "$(tail -n 20 "$dir/make.log")"
	finish
fi
# sd-bus and the loader keep memory until the end. Our own leaks are found after each input, by
# LeakSanitizer and by the number of descriptors.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1}

# libFuzzer limits an input's real time. Beside other work, at nice 19, a tenth of a second of CPU time
# takes 20 s.
fuzz() { # NAME
	mkdir "$dir/$1"
	timeout -k 10 $((seconds + 600)) "$BUILD/tests/night/fuzz/$1" -max_total_time="$seconds" \
		-timeout=300 -rss_limit_mb=2048 -max_len=16384 -print_final_stats=1 \
		-artifact_prefix="$found/$1-" "$dir/$1" "tests/night/fuzz/corpus/$1" \
		>"$dir/$1.log" 2>&1 </dev/null
	echo $? >"$dir/$1.status"
}

verdict() { # NAME
	local status ran

	status=$(cat "$dir/$1.status")
	ran=$(sed -n 's/^stat::number_of_executed_units: *//p' "$dir/$1.log")
	if test "$status" -eq 0 && test "${ran:-0}" -gt 0; then
		ok "the fuzzer of $1 finds no failure: $ran inputs in $seconds s, $(grep -o 'cov: [0-9]*' "$dir/$1.log" | tail -n 1)"
	else
		fail "the fuzzer of $1 finds no failure" "status $status; the input is in $found/$1-*, run $BUILD/tests/night/fuzz/$1 with it:
$(grep -v '^#' "$dir/$1.log" | tail -n 60)"
	fi
}

names=()
for seeds in tests/night/fuzz/corpus/*; do
	names+=("${seeds##*/}")
done
for name in "${names[@]}"; do
	while test "$(jobs -rp | wc -l)" -ge 2; do wait -n; done
	fuzz "$name" &
done
wait
for name in "${names[@]}"; do verdict "$name"; done
finish
