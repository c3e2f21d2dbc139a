#!/bin/bash
# sanitizers.sh - the unit and replay tests once more, with sanitizers and valgrind
#
# All of them with the address and undefined sanitizers, a threaded program and libprofil with the
# thread sanitizer, and libprofil's client and profilctl under valgrind.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

# Builds the targets with make SAN=...
san_make() { # SAN TARGET...
	local san=$1

	shift
	make --no-print-directory -j"$(nproc)" SAN="$san" "$@" >"$dir/make.log" 2>&1 ||
		fail "the build with SAN=$san succeeds" "$(tail -n 20 "$dir/make.log")"
}

# Runs the unit tests, and the system tests over replay.
san_suite() { # NAME SAN
	local build=build/san-${2//,/-} said

	said=$(SAN=$2 BUILD=$build PROFIL_TEST_MESSAGES=5000 PROFIL_TEST_PROFILES=500 \
		tests/run.sh "$build/tests/unit-tests" "replay:$build/tests/gate-tests" 2>&1)
	if test $? -eq 0; then
		ok "$1: $(tail -n 1 <<<"$said")"
	else
		fail "$1" "$said"
	fi
}

san_fuzz_seeds() { # SAN
	local build=build/san-${1//,/-} name

	for name in tests/night/fuzz/corpus/*; do
		name=${name##*/}
		check "the fuzzer of $name accepts its seeds with $1" "$build/tests/night/fuzz/$name" tests/night/fuzz/corpus/"$name"/*
	done
}

# Threads start, sync and stop profiles at the same time, and fork meanwhile.
san_threads() {
	daemon_start
	check "many threads call libprofil at once without a data race" \
		env TSAN_OPTIONS=halt_on_error=1 setarch -R build/san-thread/tests/programs/crowd.linked
	daemon_stop
}

san_make address,undefined all tests
san_suite "unit and replay tests pass with address and undefined" address,undefined
san_fuzz_seeds address,undefined
san_make thread build/san-thread/tests/programs/crowd.linked
san_threads

if command -v valgrind >/dev/null; then
	under=(valgrind -q --error-exitcode=42 --leak-check=full --errors-for-leak-kinds=definite)
	check "profilctl report runs clean under valgrind" \
		"${under[@]}" "$BUILD/profilctl" report tests/night/fuzz/corpus/profile/two-functions
	printf '0x400000 3\n0x400002\n' >"$dir/ticks"
	valgrind=("${under[@]}") under=() # valgrind lacks pidfd_open(), which the daemon's workers need
	daemon_start
	check "libprofil's client runs clean under valgrind" \
		"${valgrind[@]}" "$BUILD/tests/programs/served.linked" exact
	daemon_stop
else
	lacks "libprofil and profilctl run clean under valgrind" "valgrind"
fi
finish
