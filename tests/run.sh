#!/bin/bash
# run.sh - runs the test suites, shows how they go, and ends with what failed and a line of totals
#
# usage: tests/run.sh check|all|nightly|SUITE...
#
# A SUITE is a Criterion binary or a bash script; "replay:" or "kernel:" before it says what its
# daemons count with (PROFIL_TEST_OVER). Over replay the suites kernel_* are left out, over the
# kernel replay_*; the scripts of tests/gate/both run over each. "check" is all that needs no root,
# "all" everything that takes half an hour, "nightly" the rest of tests/night/vm/run.sh as well. A skip is
# not a pass. The status is 1 when a test failed, when nothing ran, or when the kernel part as a
# whole, a guest or, but in "check", what needs a tool that "make deps" installs was skipped, unless
# PROFIL_TEST_ALLOW_SKIP=1 accepts that.
set -u
exec 2>&1
cd "$(dirname "$0")/.." || exit 1

# With a bpffs of its own, where that can be had, this run sees no other's daemons, nor they its.
own_bpffs=(unshare --mount sh -c 'mount -t bpf none /sys/fs/bpf && exec "$@"' sh)
if test -z "${PROFIL_TEST_APART:-}" && "${own_bpffs[@]}" true 2>/dev/null; then
	PROFIL_TEST_APART=1 exec "${own_bpffs[@]}" tests/run.sh "$@"
fi

export BUILD=${BUILD:-build}
limit=${PROFIL_TEST_SUITE_S:-900} # each suite's, but for what more it was asked for
passed=0 failed=0 skipped=0 part_skipped=
PROFIL_TEST_DIR=$(mktemp -d "${TMPDIR:-/tmp}/profil-test.XXXXXX") || exit 1
export PROFIL_TEST_DIR
chmod 755 "$PROFIL_TEST_DIR"
trap 'rm -rf "$PROFIL_TEST_DIR"' EXIT
trap 'kill ${beside:-} 2>/dev/null; exit 130' INT TERM

# Our library as LD_PRELOAD wants it: behind the sanitizer's own, in a build that has one.
PROFIL_PRELOAD=$PWD/$BUILD/libprofil.so.1
case ${SAN:-} in
*address*) PROFIL_PRELOAD=$(${CC:-gcc} -print-file-name=libasan.so):$PROFIL_PRELOAD ;;
esac
export PROFIL_PRELOAD

count() { # PASSED FAILED SKIPPED
	passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
	printf '   %d passed, %d failed, %d skipped (%d s)\n' "$1" "$2" "$3" $((SECONDS - began))
}

# Keeps the lines that tell of failures, a guest's too, for the end of the run.
recall() {
	grep -E '^([^ ]+ +([0-9][^ ]* +)?)?FAIL ' | sed "s|^|$told: |" >>"$PROFIL_TEST_DIR/failures"
}

# Keeps the lines that tell of what a missing tool left untested, in a script's output or a TAP file.
recall_lacks() { # FILE
	sed -nE "s/^ok - (.*: sudo make deps)$/skip \1/; /^skip .*: sudo make deps$/s|^|$told: |p" "$1" >>"$PROFIL_TEST_DIR/lacks"
}

fault() { # WHAT
	local line="FAIL $suite: $1"

	printf '%s\n' "$line"
	recall <<<"$line" # no tee to /dev/stderr: it would empty a log file
}

broken() { # WHAT
	fault "$1"
	count 0 1 0
}

# A suite that ends badly has failed, whatever it says of its tests.
count_ended() { # STATUS PASSED FAILED SKIPPED
	if test "$1" -ne 0 && test "$3" -eq 0; then
		fault "ended with status $1, but no test had failed"
		set -- "$1" "$2" 1 "$4"
	fi
	count "${@:2}"
}

# A TAP file's failures with their reasons, each as a script tells of its own.
criterion_failures() { # FILE
	awk '
		/^(not )?ok/ && said { print said; said = "" }
		/^not ok/ { sub(/^not ok - /, ""); sub(/ +/, ": "); said = "FAIL " $0 }
		said && /^  - / { sub(/: \|.$/, ""); said = said " " $2 ":" }
		said && /^      ./ { sub(/^ +/, ""); said = said " " $0 }
		END { if (said) print said }' "$1"
}

# Reads TAP. Criterion tells of a test that its filter left out as of a skipped one.
criterion_totals() { # LEFT_OUT_SUITES FILE
	awk -v left_out="^ok - $1" '
		/^ok/ && /# SKIP test was skipped$/ && $0 ~ left_out { next }
		/^ok/ && /# SKIP/ { s++; sub(/^ok - /, ""); print "skip " $0 > "/dev/stderr"; next }
		/^ok/ { p++ }
		/^not ok/ { f++ }
		END { print p + 0, f + 0, s + 0 }' "$2"
}

# How long a suite may take: as long as any, and what was asked for by FUZZ_S, two fuzzers at a time,
# or by PROFIL_TEST_MESSAGES, of which a daemon with sanitizers takes some thousands in a second.
limit_of() { # SUITE
	local fuzzers=(tests/night/fuzz/corpus/*) rounds

	rounds=$(((${#fuzzers[@]} + 1) / 2))
	case $1 in
	tests/night/fuzz/run.sh) echo $((limit + rounds * ${FUZZ_S:-60})) ;;
	tests/night/hostile/attack.sh | */night-tests) echo $((limit + ${PROFIL_TEST_MESSAGES:-0} / 500)) ;;
	*) echo "$limit" ;;
	esac
}

run_criterion() { # BINARY OVER
	local tap=$PROFIL_TEST_DIR/tap status totals filter=() out=none_

	case $2 in
	replay) out=kernel_ filter=(--filter '!(kernel_*)/*') ;;
	kernel) out=replay_ filter=(--filter '!(replay_*)/*' -j1) ;;
	esac
	rm -f "$tap"
	timeout -k 10 "$(limit_of "$1")" "$1" --timeout 120 --tap="$tap" "${filter[@]}"
	status=$?
	if ! test -s "$tap"; then
		broken "ended with status $status and told of no test"
		return
	fi
	criterion_failures "$tap" | recall
	recall_lacks "$tap"
	totals=$(criterion_totals "$out" "$tap")
	# shellcheck disable=SC2086 # three numbers
	count_ended "$status" $totals
}

run_script() { # SCRIPT
	local out=$PROFIL_TEST_DIR/out status

	timeout -k 10 "$(limit_of "$1")" "$1" </dev/null | tee "$out"
	status=${PIPESTATUS[0]}
	if ! [[ $(tail -n 1 "$out") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		broken "ended with status $status and without its totals"
		return
	fi
	recall <"$out"
	recall_lacks "$out"
	count_ended "$status" "${BASH_REMATCH[@]:1}"
}

# What this run's daemons keep in the kernel for the next one, under their socket's name.
kept() {
	test -z "${PROFIL_TEST_APART:-}" || find /sys/fs/bpf -maxdepth 1 -name 'profil-*' 2>/dev/null | sort
}

# A killed daemon's clocks tick on until the next one comes: a suite has to see to that.
put_away() { # KEPT_BEFORE
	local left

	left=$(comm -13 <(echo "$1") <(kept))
	test "$left" || return
	broken "a daemon was killed and never followed: it left ${left//$'\n'/ }"
	xargs rm -r <<<"$left"
}

run_suite() { # [OVER:]SUITE
	local over='' before told

	case $1 in replay:* | kernel:*) over=${1%%:*} ;; esac
	suite=${1#"${over:+$over:}"} began=$SECONDS
	told=$suite${over:+ over ${over/kernel/the kernel}}
	printf '== %s\n' "$told"
	export PROFIL_TEST_OVER=${over:-replay}
	before=$(kept)
	if ! test -x "$suite"; then
		broken "no such program: 'make tests' builds it"
	elif [[ $suite == *.sh ]]; then
		run_script "$suite"
	else
		run_criterion "$suite" "$over"
	fi
	put_away "$before"
}

# Says why the kernel part cannot run here; prints nothing where it can.
kernel_lack() {
	if test "$(id -u)" -ne 0; then
		echo "needs root: sudo make test"
	elif ! test -r /sys/kernel/btf/vmlinux; then
		echo "this kernel has no /sys/kernel/btf/vmlinux: it needs CONFIG_DEBUG_INFO_BTF=y"
	fi
}

# Suites that need much CPU time and measure none run with low priority beside the kernel suites that
# mostly wait; their output follows. Those of tests/night/kernel compare times.
begin_beside() { # all|nightly
	FUZZ_S=${FUZZ_S:-$(test "$1" = all && echo 15 || echo 60)} PROFIL_TEST_APART='' \
		nice -n 19 tests/run.sh replay:tests/night/care/sanitizers.sh replay:tests/night/fuzz/run.sh \
		replay:tests/night/care/analyze.sh tests/night/packages.sh >"$PROFIL_TEST_DIR/beside" 2>&1 &
	beside=$! beside_began=$SECONDS
}

end_beside() {
	local status

	test -n "${beside:-}" || return
	wait "$beside"
	status=$?
	beside='' suite='what ran beside the kernel suite' began=$beside_began told=beside
	cat "$PROFIL_TEST_DIR/beside"
	if ! [[ $(tail -n 1 "$PROFIL_TEST_DIR/beside") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		broken "ended with status $status and without its totals"
		return
	fi
	sed -n '/^== what failed$/,$p' "$PROFIL_TEST_DIR/beside" | grep ': FAIL ' >>"$PROFIL_TEST_DIR/failures"
	recall_lacks "$PROFIL_TEST_DIR/beside"
	count_ended "$status" "${BASH_REMATCH[@]:1}"
}

run_all() {
	local f lack

	run_suite "$BUILD/tests/unit-tests"
	run_suite tests/gate/style.sh
	run_suite "replay:$BUILD/tests/gate-tests"
	for f in tests/gate/{both,replay}/*.sh; do
		run_suite "replay:$f"
	done
	lack=$(kernel_lack)
	test "$lack" || run_suite "kernel:$BUILD/tests/kernel-tests"
	test "$1" != check || return
	if test "$lack"; then
		printf 'skip all tests over the kernel: %s\n' "$lack"
		skipped=$((skipped + 1)) part_skipped=1
		return
	fi
	test "${SAN:-}" || begin_beside "$1"
	run_suite "kernel:$BUILD/tests/gate-tests"
	run_suite "kernel:$BUILD/tests/night-tests"
	for f in tests/gate/{both,kernel}/*.sh; do
		run_suite "kernel:$f"
	done
	end_beside
	for f in tests/night/kernel/*.sh; do
		run_suite "kernel:$f"
	done
	if test "${SAN:-}"; then
		printf 'skip %s: %s\n' "hostile input, faults, fuzzers, packages and guests" \
			"they have builds of their own, or no sanitizer's libraries: make test without SAN="
		skipped=$((skipped + 1))
		return
	fi
	run_hard "$1"
	run_guests "$1"
}

# Each takes a second: by day some of them, by night all.
run_kernel_faults() { # all|nightly
	local step=11

	test "$1" = all || step=1
	PROFIL_TEST_FAULTS_STEP=$step limit=3600 run_suite kernel:tests/night/hostile/faults.sh
}

# Hostile input and faults; by night coverage, too.
run_hard() { # all|nightly
	test "$1" = all || export PROFIL_TEST_HOSTILE=long
	run_suite replay:tests/night/hostile/faults.sh
	run_kernel_faults "$1"
	run_suite kernel:tests/night/hostile/attack.sh
	run_suite kernel:tests/night/hostile/escapes.sh
	run_suite kernel:tests/night/hostile/served.sh
	run_suite kernel:tests/night/hostile/liar.sh
	run_suite kernel:tests/night/hostile/http.sh
	limit=3600 run_suite kernel:tests/night/hostile/neighbour.sh
	test "$1" = nightly || return
	run_suite replay:tests/night/care/coverage.sh
}

# A guest that cannot be had leaves a part of the tests undone.
run_guests() { # all|nightly
	export PROFIL_VM_GUESTS='trixie systemd' PROFIL_VM_SUITES='smoke kernel_vectors' PROFIL_VM_S=900

	test "$1" = all || unset PROFIL_VM_GUESTS PROFIL_VM_SUITES PROFIL_VM_S
	limit=10800 PROFIL_TEST_ALLOW_SKIP=1 run_suite tests/night/vm/run.sh
	! grep -q ' skip guest: boot' "$PROFIL_TEST_DIR/out" || part_skipped=1
}

case ${1:?usage: tests/run.sh check|all|nightly|SUITE...} in
check | all | nightly) run_all "$1" ;;
*) for s; do run_suite "$s"; done ;;
esac

tell_of() { # WHAT FILE
	test -s "$PROFIL_TEST_DIR/$2" || return
	printf '== %s\n' "$1"
	cat "$PROFIL_TEST_DIR/$2"
}

if tell_of 'what a missing tool left untested' lacks && test "$1" != check; then
	part_skipped=1
fi
tell_of 'what failed' failures
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
test "$failed" -eq 0 && test "$passed" -gt 0 || exit 1
test -z "$part_skipped" || test "${PROFIL_TEST_ALLOW_SKIP:-0}" = 1 || exit 1
