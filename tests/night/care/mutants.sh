#!/bin/bash
# mutants.sh - puts the faults of mutants.txt into a copy of the tree, one by one: the gate must notice
#
# usage: tests/night/care/mutants.sh [NAME...]    as root; without NAMEs all of them
#
# Builds a copy of HEAD, or of the commit or tree MUTANTS_TREE, with ccache if there is one. The tests of each mutant
# must succeed before any fault is put in. Prints a line for each: mutant, test, seconds of the build,
# seconds until the test failed.
set -u
cd "$(dirname "$0")/../../.." || exit 1
list=$PWD/tests/night/care/mutants.txt
work=$(mktemp -d "${TMPDIR:-/tmp}/profil-mutants.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
git archive "${MUTANTS_TREE:-HEAD}" | tar -x -C "$work"
cp "$list" "$work/list"
cd "$work" || exit 1
export PROFIL_TEST_OVER=kernel PROFIL_TEST_DIR=$work/run
mkdir "$PROFIL_TEST_DIR"
CC=${CC:-gcc}
! command -v ccache >/dev/null || CC="ccache $CC"
passed=0 failed=0

build() { # BINARY...
	local targets=("${@/#/build/tests/}")

	targets=("${targets[@]/%/-tests}")
	test "${*#*kernel}" = "$*" || targets+=(build/profild)
	make -s -j"$(nproc)" CC="$CC" "${targets[@]}" >"$work/log" 2>&1
}

run() { # BINARY FILTER
	local wrap=()

	test "$1" = unit || wrap=(unshare --mount sh -c 'mount -t bpf none /sys/fs/bpf && exec "$@"' sh)
	timeout -k 5 300 "${wrap[@]}" "build/tests/$1-tests" --filter "$2" --tap=- >"$work/out" 2>&1
}

# The tests ran, and at least one of them failed.
noticed() { # BINARY FILTER
	! run "$@" && grep -q '^not ok' "$work/out"
}

verdict() { # ok|FAIL TEXT
	printf '%s %s\n' "$1" "$2"
	if test "$1" = ok; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# Applies the hunk of a mutant; fails if its lines are not in the file exactly once.
apply() { # NAME
	python3 - list "$1" <<-'END'
		import sys
		text = open(sys.argv[1]).read().split("\nmutant ")[1:]
		lines = next(m for m in text if m.split(":")[0] == sys.argv[2]).split("\n")
		path = next(line[5:] for line in lines if line.startswith("file "))
		hunk = [line for line in lines[1:] if line[:1] in ("-", "+", " ")]
		old = "".join(line[1:] + "\n" for line in hunk if line[0] != "+")
		new = "".join(line[1:] + "\n" for line in hunk if line[0] != "-")
		source = open(path).read()
		if source.count(old) != 1:
		    sys.exit(f"{path}: the lines are there {source.count(old)} times")
		open(path, "w").write(source.replace(old, new))
	END
}

field() { # NAME WORD
	awk -v name="$1" -v word="$2" '
		/^mutant / { here = $2 == name ":" }
		here && $1 == word { print $2, $3 }' list
}

try() { # NAME
	local name=$1 file began built test binary filter why binaries

	file=$(field "$name" file)
	file=${file% }
	cp "$file" "$work/original"
	if ! why=$(apply "$name" 2>&1); then
		verdict FAIL "$name: cannot be applied: $why"
		return
	fi
	began=$SECONDS
	mapfile -t binaries < <(field "$name" test | cut -d ' ' -f 1)
	if ! build "${binaries[@]}"; then
		verdict FAIL "$name: does not compile: $(tail -n 1 "$work/log")"
	else
		built=$((SECONDS - began))
		while read -r binary filter; do
			began=$SECONDS
			test="$binary-tests $filter"
			if noticed "$binary" "$filter"; then
				verdict ok "$(printf '%-20s %-34s %4d s %4d s' "$name" "$test" "$built" $((SECONDS - began)))"
			else
				verdict FAIL "$name: $test does not notice it"
			fi
		done < <(field "$name" test)
	fi
	cp "$work/original" "$file"
}

build kernel unit || { cat "$work/log"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
while read -r _ binary filter; do
	run "$binary" "$filter" || verdict FAIL "without a fault: $binary-tests $filter: $(grep '^not ok' "$work/out" | head -n 1)"
done < <(grep '^test ' list | sort -u)
test $# -gt 0 || mapfile -t names < <(sed -n 's/^mutant \([^:]*\):.*/\1/p' list)
for name in "${@:-${names[@]}}"; do
	try "$name"
done
printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
test "$failed" -eq 0
