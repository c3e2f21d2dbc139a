#!/bin/bash
# style.sh - holds the sources to the project's rules: layers, sizes, headers, layout
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=tests/lib/headers.sh
. tests/lib/headers.sh

mapfile -t sources < <(find src bpf include tests -name '*.[ch]' | sort)
mapfile -t headers < <(find src bpf include tests -name '*.h' | sort)
mapfile -t scripts < <(find tests mk vendor .ci -name '*.sh' -o -path .ci/run | sort)
mapfile -t pages < <(find src -name '*.[1-8]' | sort)

# What takes seconds: of all files, or by "make quick" of the changed ones.
changed() { # FILE...
	if test "${PROFIL_TEST_CHANGED:-}"; then
		comm -12 <(printf '%s\n' "$@") <(mk/quick.sh files | sort -u)
	else
		printf '%s\n' "$@"
	fi
}
without_source() { # HEADER...
	local f

	for f; do test -e "${f%.h}.c" || echo "$f"; done
}
mapfile -t slow_sources < <(changed "${sources[@]}")
# The night compiles each header.
mapfile -t slow_headers < <(if test "${PROFIL_TEST_CHANGED:-}"; then changed "${headers[@]}"; else without_source "${headers[@]}"; fi)
mapfile -t slow_scripts < <(changed "${scripts[@]}")

# ok when FOUND is empty; else FAIL with its lines.
none() { # NAME FOUND
	if test -z "$2"; then ok "$1"; else fail "$1" $'\n'"$2"; fi
}

long_functions() {
	awk '/^{/ { start = FNR }
		/^}/ && start { if (FNR - start - 1 > 60) print FILENAME ":" start ": " FNR - start - 1 " lines"; start = 0 }' "$@"
}

long_files() {
	wc -l "$@" | awk '$2 != "total" && $1 > 600 { print $2 ": " $1 " lines" }'
}

unnamed_files() {
	awk 'FNR == 1 { n = FILENAME; sub(/.*\//, "", n); script = FILENAME !~ /\.[ch]$/; starts = (script ? "# " : "/* ") n " - " }
		FNR == 1 + script && (index($0, starts) != 1 || length($0) == length(starts)) { print FILENAME }' "$@"
}

# Prints headers without a guard, and guards of two headers.
unguarded() {
	awk 'FNR == 1 { guard = "" }
		/^#ifndef PROFIL_([A-Z0-9_]*_)?H$/ && !guard { guard = $2; if (guard in of) print guard }
		$0 == "#define " guard && guard { of[guard] = FILENAME; has[FILENAME] = 1 }
		END { for (i = 1; i < ARGC; i++) if (!(ARGV[i] in has)) print ARGV[i] }' "$@"
}

# Prints the names of Criterion's tests and of checks in scripts, with file and line.
test_names() {
	grep -rnoE '^(ParameterizedTest|Theory|Test)\(.*|\b(check|ok|fail|refuses|skip|finds|none) "[^"$]+"' tests --include='*.[ch]' --include='*.sh' |
		grep -v '^tests/gate/style.sh:'
}

# What a test of the gate must not contain, since it would judge what the scheduler chooses: waits and limits of time,
# numbers of samples against CPU time, shares, other profilers, memory growth. A "sleep" of 100 s and more is a
# process that the test ends. Programs that are profiled are in tests/programs/, where this does not apply.
clocks_c='\b(u?sleep|nanosleep|clock_nanosleep|alarm|setitimer|daemon_kib|loop_timed|ticks_expect\w*)\(|\.timeout\b|\btime\(NULL\)|\bCLOCK_(MONOTONIC|REALTIME|BOOTTIME)\b|\* ?(9[0-9]|10|100|1000)\b[^;]*[<>]=? |_(geq|leq|gt|lt)\([^;]*\* ?(9[0-9]|9|10|12|100|1000)\b'
# shellcheck disable=SC2016 # a pattern
clocks_sh='\bsleep ("|\$|[0-9]{1,2}\b|[0-9]*\.)|\$\(\(.*SECONDS|\$SECONDS|\bnproc\b|\bperf (stat|record)\b|\btimeout [0-9"$-]|--timeout\b|--max-time\b|\bby_night\b|\b(near|mostly) |share=|\bpercent\b[^-]'
judges_a_clock() {
	grep -nE "$clocks_c" -r tests/gate/{system,kernel,conformance} --include='*.[ch]'
	grep -nE "$clocks_sh" -r tests/gate/{both,kernel,replay} --include='*.sh'
}

# Prints scripts and Criterion suites below tests/gate and tests/night that no command runs, and suites that two run.
# The unit tests are one program; vm/guest.sh runs the scripts beside it; the formats have a browser and BOLT in the night.
unreached() {
	local where suite

	where=$(tests/run.sh --where | sed -E 's/^(make \w+ +)((replay|kernel|user):)?/\1/')
	grep -lx 'finish' -r tests/gate tests/night --include='*.sh' | grep -v '^tests/night/vm/' |
		while read -r suite; do grep -q " $suite$" <<<"$where" || echo "no command runs $suite"; done
	sed -nE 's/^Test\(([a-z_0-9]+),.*/\1/p; s/^ParameterizedTest\([^,]*, ([a-z_0-9]+),.*/\1/p' \
		tests/gate/{system/*,kernel}/*.c tests/night/system/*/*.c | sort -u |
		while read -r suite; do grep -q ":$suite$" <<<"$where" || echo "no command runs $suite"; done
	sort -u <<<"$where" | sed -E 's/^make \w+ +//' | sort | uniq -d | grep -vE '^tests/gate/replay/(compilers|formats|stacks)\.sh$'
}

# Runs the command over the files, if there are any.
over() { # COMMAND... -- FILE...
	test "${!#}" = -- || "$@"
}

# Checks the command; skipped when TOOL is not installed.
with() { # TOOL NAME COMMAND...
	local tool=$1 name=$2

	shift 2
	if command -v "$tool" >/dev/null; then
		check "$name" "$@"
	else
		lacks "$name" "$tool"
	fi
}

none "includes point down the layers, without cycles" "$(python3 tests/gate/includes.py)"
none "no chain of calls in the BPF programs has more than 512 bytes of stack" \
	"$(python3 tests/gate/bpf_stack.py "$BUILD/bpf/profil.bpf.o" 2>&1)"
none "no function over 60 lines" "$(long_functions "${sources[@]}")"
none "no file over 600 lines" "$(long_files "${slow_sources[@]}" "${slow_scripts[@]}" /dev/null)"
none "every file begins with its name and what it is" "$(unnamed_files "${sources[@]}" "${scripts[@]}")"
none "every header is guarded, each by its own name" "$(unguarded "${headers[@]}")"
none "only src/core/arch.h distinguishes architectures" \
	"$(grep -nE '__(x86_64|i386|aarch64|arm)__|__TARGET_ARCH_' src bpf -r --include='*.[ch]' | grep -v ^src/core/arch.h:)"
none "no sentence has who, whoever, nobody or somebody as its subject" \
	"$(grep -rniwE 'who|whoever|nobody|somebody' src bpf include README.md CONTRIBUTING.md --include='*.[ch1-8]' --include='*.md' --include='*.json')"
none "no test name has who, whoever, nobody or somebody as its subject" "$(test_names | grep -iE '(^|_|\b)(who|whoever|nobody|somebody)(_|\b)')"
none "no test of the gate judges what the scheduler chooses" "$(judges_a_clock)"
# In an archive without .git there is nothing to be added by mistake.
none "no file of the top folder is a program's output" \
	"$(git ls-files ':(glob)*' 2>/dev/null | xargs -r grep -LI .)"
none "one command runs each test" "$(unreached)"
none "no goto outside of bpf/" "$(grep -nw 'goto' src include -r --include='*.[ch]')"
none "headers stand alone" "$(dependent "${slow_headers[@]}")"
with clang-format "sources are laid out by clang-format" over clang-format --dry-run -Werror -- "${slow_sources[@]}"
with shellcheck "scripts pass shellcheck" over shellcheck -x -- "${slow_scripts[@]}"
PROFIL_TEST_OVER=replay daemon_start
none "the examples of README and the man pages run, or are listed with a reason" \
	"$(python3 tests/lib/examples.py replay "$BUILD/profilctl" 2>&1)"
daemon_stop
if test ${#pages[@]} -gt 0; then
	with mandoc "man pages pass mandoc" mandoc -Tlint -Wwarning "${pages[@]}"
fi
finish
