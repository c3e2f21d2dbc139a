#!/bin/bash
# run.sh - runs the tests inside guests with other kernels: a line for each test, then a table
#
# usage: tests/vm/run.sh [RELEASE...]
#
# A RELEASE is a Debian release, whose kernel is booted: bookworm (6.1), trixie (6.12) and sid (the
# newest) unless told. The guest has the host's files, read only, and so runs what was built here.
# PROFIL_VM_SUITES says what of it (see tests/vm/guest.sh); PROFIL_VM_S is how many seconds a
# guest has. What a guest says is kept in $BUILD/vm/.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/vm/fetch.sh
. tests/vm/fetch.sh
# shellcheck source=tests/vm/kvm.sh
. tests/vm/kvm.sh

BUILD=${BUILD:-build}
suites=${PROFIL_VM_SUITES:-smoke system scripts}
limit=${PROFIL_VM_S:-1800}
failed=0 accel='--cpus 2'
# An emulated CPU whose time is the number of its instructions: its ticks come when they are due, however
# busy the host is. QEMU does not bring up a second one so.
emulation="--disable-kvm --cpus 1 --qemu-opts='-icount shift=2'"
test $# -gt 0 || set -- bookworm trixie sid

# Boots @DIR's kernel and runs the command there. What it says goes to the standard output, what
# the kernel says to @LOG. virtme-ng wants a terminal.
boot() { # SECONDS DIR LOG COMMAND
	local vng

	vng="vng --verbose $accel --force-9p --memory 1G"
	vng+=" --run $2/boot/vmlinuz-$(cat "$2/version") --exec '$4' 2>$3"
	PATH=$virtme/usr/bin:$PATH PYTHONPATH=$virtme/usr/lib/python3/dist-packages \
		timeout -k 10 "$1" nice -n 10 script -qec "$vng" /dev/null </dev/null | sed -u 's|\r$||'
}

# Counts the lines of @VERDICT in a guest's log, of the suite @SUITE.
tally() { # LOG SUITE VERDICT
	awk -v suite="$2" -v verdict="$3" '
		/^suite / { now = $2 }
		now == suite && $1 == verdict { n++ }
		END { print n + 0 }' "$1"
}

# One kernel: shows its lines as they come; a guest that does not come to its end has failed.
run_kernel() { # RELEASE
	local dir version log

	dir=$(vm_kernel "$1") || exit 1
	version=$(cat "$dir/version") log=$BUILD/vm/$1.log
	boot "$limit" "$dir" "$BUILD/vm/$1.console" "env BUILD=$BUILD tests/vm/guest.sh $suites" |
		tee "$log" | awk -v kernel="$version" '
			/^suite / { suite = $2; next }
			/^(ok|FAIL|skip) / { verdict = $1; sub(/^[^ ]* /, ""); sub(/:$/, "")
				printf "%-22s %-4s %s: %s\n", kernel, verdict, suite, $0; fflush(); next }
			/^  / { print; fflush() }'
	if ! grep -qx 'guest done' "$log"; then
		echo "suite guest" >>"$log"
		echo "FAIL the guest did not come to its end" >>"$log"
		printf '%-22s FAIL guest: it did not come to its end; its log:\n' "$version"
		tail -n 50 "$log" "$BUILD/vm/$1.console"
	fi
}

table() { # RELEASE...
	local release log suite cell bad

	printf '\n%-22s' kernel
	# shellcheck disable=SC2086 # words
	printf ' %-26s' $suites
	echo
	for release; do
		log=$BUILD/vm/$release.log
		printf '%-22s' "$(cat "$vm_cache/kernel/$release/version")"
		for suite in $suites; do
			bad=$(tally "$log" "$suite" FAIL)
			cell="$(tally "$log" "$suite" ok) ok, $(tally "$log" "$suite" skip) skipped"
			test "$bad" -eq 0 || cell="$bad FAILED, $cell"
			printf ' %-26s' "$cell"
		done
		echo
		grep -q '^FAIL' "$log" && failed=1
		grep -q '^ok' "$log" || failed=1
	done
}

mkdir -p "$BUILD/vm"
virtme=$(vm_virtme) || exit 1
first=$(vm_kernel "$1") || exit 1
if test "$(vm_accel "$first/boot/vmlinuz-$(cat "$first/version")")" = tcg; then
	accel=$emulation
	echo "guests run in emulation, which takes minutes each: there is no /dev/kvm that works"
fi
for release; do
	run_kernel "$release"
done
table "$@"
test "$failed" -eq 0
