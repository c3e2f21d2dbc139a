#!/bin/bash
# coverage.sh - line coverage of the tests that need no root; parsers must be covered almost completely
#
# COVERAGE_LEAST: the least percentage of a parser's lines.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

least=${COVERAGE_LEAST:-95}
build=build/coverage
table=build/coverage.txt
# Parsers of input from outside: sockets, the configuration, files of other processes, and what an
# earlier daemon or profilctl stored.
parsers=(src/core/wire.c src/profild/config.c src/profild/ipc/request.c src/profild/profile/replay.c
	src/profild/profile/target.c src/profile/json_load.c src/profile/json_stacks.c src/profile/json_interpreted.c
	src/symbols/proc/proc_maps.c src/symbols/perf_map.c)

find "$build" -name '*.gcda' -delete 2>/dev/null
if ! make --no-print-directory -j"$(nproc)" B="$build" SAN= LDFLAGS=--coverage \
	CFLAGS='-O0 -g --coverage' all tests >"$dir/make.log" 2>&1; then
	fail "the build for coverage succeeds" "$(tail -n 20 "$dir/make.log")"
	finish
fi
chmod -R a+rwX "$build" # tests that change their uid write coverage data as well

# Other suites check that these tests pass.
BUILD=$build PROFIL_TEST_MESSAGES=5000 PROFIL_TEST_PROFILES=100 PROFIL_TEST_LIVE=32 tests/run.sh \
	"$build/tests/unit-tests" "replay:$build/tests/gate-tests" replay:tests/gate/both/profilctl.sh \
	replay:tests/gate/replay/reports.sh replay:tests/gate/replay/formats.sh >"$dir/run.log" 2>&1
for seeds in tests/night/fuzz/corpus/*; do
	"$build/tests/night/fuzz/${seeds##*/}" "$seeds"/* >/dev/null 2>>"$dir/run.log"
done

# Prints PERCENT and LINES of a source, of its best object: libprofil compiles some twice.
lines_of() { # SOURCE
	local object

	for object in "$build/${1%.c}.o" "$build/${1%.c}.pic.o"; do
		test -e "${object%.o}.gcda" || continue
		gcov -n -o "$object" "$1" 2>/dev/null |
			sed -n "\\|^File '$1'|{n;s/Lines executed:\\(.*\\)% of \\(.*\\)/\\1 \\2/p}"
	done | sort -n | tail -n 1
}

for source in $(git ls-files 'src/*.c'); do
	read -r percent lines <<<"$(lines_of "$source")"
	printf '%6.2f %% of %4d  %s\n' "${percent:-0}" "${lines:-0}" "$source"
done >"$table"
cat "$table"
awk '{ n += $4; done += $1 * $4 / 100 } END { printf "%6.2f %% of %d lines in all\n", 100 * done / n, n }' "$table"
for source in "${parsers[@]}"; do
	percent=$(awk -v f="$source" '$5 == f { print $1 }' "$table")
	check "tests cover at least $least % of $source: $percent %" \
		awk -v p="$percent" -v least="$least" 'BEGIN { exit p < least }'
done
finish
