#!/bin/bash
# mutants.sh - puts the faults of mutants.txt into a copy of the tree, one by one: the gate must notice
#
# usage: tests/night/care/mutants.sh [NAME...]    as root; without NAMEs all of them
#
# Builds a copy of HEAD, or of the commit or tree MUTANTS_TREE, with ccache if there is one. The suites of all mutants
# must pass before any fault is put in. A mutant is noticed if a test of its suite fails and, unless it is of the unit
# tests, another one passes: where all fail, the programs may not even load. A suite that hangs has no verdict, as in
# the gate.
#
# Prints a line for each suite of a mutant: the seconds of the build, those until the suite had ended, and the
# first test that failed.
set -u
cd "$(dirname "$0")/../../.." || exit 1
list=$PWD/tests/night/care/mutants.txt
work=$(mktemp -d "${TMPDIR:-/tmp}/profil-mutants.XXXXXX") || exit 1
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
git archive "${MUTANTS_TREE:-HEAD}" | tar -x -C "$work"
cp "$list" "$work/list"
cd "$work" || exit 1
export PROFIL_TEST_DIR=$work/run PROFIL_TEST_GATE=1 PROFIL_TEST_WORKERS=1
export CCACHE_NOHASHDIR=1 # the copy has another path each time
mkdir "$PROFIL_TEST_DIR"
CC=${CC:-gcc}
! command -v ccache >/dev/null || CC="ccache ${CC#ccache }"
passed=0 failed=0

verdict() { # ok|FAIL TEXT
	printf '%s %s\n' "$1" "$2"
	if test "$1" = ok; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# Builds what the suites of a mutant need: unit, kernel and gate are binaries; scripts have the programs.
build() { # KIND...
	local targets=() kind

	for kind; do
		case $kind in
		unit) targets+=(build/tests/unit-tests) ;;
		script) targets+=(all build/tests/programs/{split.linked,no_load.so,timeshift.so}) ;;
		kernel) targets+=(build/profild build/tests/kernel-tests) ;;
		gate) targets+=(build/profild build/tests/gate-tests build/tests/programs/{image,image.linked,failing.so}) ;;
		esac
	done
	make -s -j"$(nproc)" CC="$CC" "${targets[@]}" >"$work/log" 2>&1
}

# The suite as tests/run.sh has it.
suite_of() { # KIND NAME
	case $1 in
	script) case $2 in kernel/*) echo "kernel:tests/gate/$2" ;; *) echo "replay:tests/gate/$2" ;; esac ;;
	unit) echo "replay:build/tests/unit-tests:$2" ;;
	*) echo "kernel:build/tests/$1-tests:$2" ;;
	esac
}

# Prints what becomes of a suite: "passes", "hangs", "fails as a whole", or "notices" and the first test to fail.
judge() { # KIND NAME SILENCE_S
	local status totals first

	PROFIL_TEST_SILENCE_S=$3 tests/run.sh "$(suite_of "$1" "$2")" >"$work/out" 2>&1
	status=$?
	totals=$(tail -n 1 "$work/out")
	first=$(sed -n '/^== what failed$/,$s/^[^ ]* FAIL //p' "$work/out" | head -n 1)
	case $1,$status,$totals in
	*,0,*) echo passes ;;
	*,2,*) echo hangs ;;
	*, | [!u]*,1,"0 passed"*) echo 'fails as a whole' ;;
	*) echo "notices ${first%%: *}" ;;
	esac
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
		here && $1 == word { sub(/^[^ ]+ /, ""); print }' list
}

# Prints the mutant's suite, its verdict, and the times. @want is the beginning of the verdict that it must have.
show() { # NAME SUITE VERDICT BUILD_S SUITE_S WANT
	local how=FAIL

	test "${3#"$6"}" = "$3" || how=ok
	verdict $how "$(printf '%-20s %-28s %4d s %4d s  %s' "$1" "$2" "$4" "$5" "$3")"
}

try() { # NAME
	local name=$1 file want silence began built kind suite why kinds found

	file=$(field "$name" file)
	want=$(field "$name" verdict)
	silence=$(field "$name" silence)
	cp "$file" "$work/original"
	if ! why=$(apply "$name" 2>&1); then
		verdict FAIL "$name: cannot be applied: $why"
		return
	fi
	began=$SECONDS
	mapfile -t kinds < <(field "$name" test | cut -d ' ' -f 1 | sort -u)
	if build "${kinds[@]}"; then
		built=$((SECONDS - began))
		while read -r kind suite; do
			began=$SECONDS
			found=$(judge "$kind" "$suite" "${silence:-300}")
			show "$name" "$kind $suite" "$found" "$built" $((SECONDS - began)) "${want:-notices}"
		done < <(field "$name" test)
	else
		show "$name" - 'does not compile' $((SECONDS - began)) 0 "${want:-notices}"
	fi
	cp "$work/original" "$file"
}

if test $# -gt 0; then
	names=("$@")
else
	mapfile -t names < <(sed -n 's/^mutant \([^:]*\):.*/\1/p' list)
fi
mapfile -t suites < <(for name in "${names[@]}"; do field "$name" test; done | sort -u)
mapfile -t kinds < <(printf '%s\n' "${suites[@]%% *}" | sort -u)
build "${kinds[@]}" || { cat "$work/log"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
for suite in "${suites[@]}"; do
	began=$SECONDS
	show '(no fault)' "$suite" "$(judge "${suite%% *}" "${suite#* }" 300)" 0 $((SECONDS - began)) passes
done
for name in "${names[@]}"; do
	try "$name"
done
printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
test "$failed" -eq 0
