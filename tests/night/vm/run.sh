#!/bin/bash
# run.sh - runs the tests inside guests: a line for each test as it comes, then a table of all
#
# usage: tests/night/vm/run.sh [GUEST...]
#
# A GUEST is a Debian release, whose kernel is booted over the host's files, read only, and so runs
# what was built here: bookworm (6.1), trixie (6.12) and sid (the newest); or "systemd", a machine
# on which the packages are installed; or "arm64", another architecture. PROFIL_VM_GUESTS names them
# too; otherwise it is all. PROFIL_VM_SUITES says what a release or arm64 runs (see tests/night/vm/guest.sh); PROFIL_VM_S is how many seconds
# a guest has. What a guest and its kernel say is kept in $BUILD/vm/, and the table.
#
# The status is 1 when a test failed, or when a guest could not be fetched, unless
# PROFIL_TEST_ALLOW_SKIP=1 accepts that.
set -u
cd "$(dirname "$0")/../../.." || exit 1
BUILD=${BUILD:-build}
out=$BUILD/vm
# shellcheck source=tests/night/vm/kernel.sh
. tests/night/vm/kernel.sh
# shellcheck source=tests/night/vm/systemd.sh
. tests/night/vm/systemd.sh
# shellcheck source=tests/night/vm/arm64.sh
. tests/night/vm/arm64.sh

limit=${PROFIL_VM_S:-7200}
trap 'trap "" TERM; kill 0; wait; exit 130' INT TERM
read -r -a guests <<<"${PROFIL_VM_GUESTS:-bookworm trixie sid arm64 systemd}"
test $# -gt 0 || set -- "${guests[@]}"

# Prints the directory of what the guest boots from.
fetch() { # GUEST
	case $1 in
	systemd) vm_image bookworm ;;
	arm64) vm_arm64 ;;
	*) vm_virtme >/dev/null && vm_kernel "$1" ;;
	esac
}

# Boots what is in @DIR and prints the guest's lines. What its kernel says goes to @CONSOLE.
boot() { # GUEST DIR CONSOLE
	case $1 in
	systemd | arm64) "boot_$1" "$2" "$3" ;;
	*) boot_kernel "$2" "$3" "${PROFIL_VM_SUITES:-smoke capabilities system scripts}" ;;
	esac | sed -u 's|\r$||'
}

# Shows a guest's lines as they come, each with its guest and kernel. An awk might wait for more.
show() { # GUEST
	local line kernel='' suite=''

	while IFS= read -r line; do
		case $line in
		'kernel '*) kernel=${line#* } ;;
		'suite '*) suite=${line#* } ;;
		'ok '* | 'FAIL '* | 'skip '*)
			printf '%-8s %-22s %-4s %s: %s\n' "$1" "$kernel" "${line%% *}" "$suite" "${line#* }"
			;;
		'  '*) printf '%-8s %s\n' "$1" "$line" ;;
		esac
	done
}

# Why there is no such guest on this machine, however much is fetched; nothing where there is.
lack() { # GUEST
	case $1:$(uname -m) in
	systemd:x86_64) ;;
	systemd:*) echo "its disks and serial ports are those of a PC, and this is $(uname -m)" ;;
	esac
}

declare -A dir_of

# Finds what a guest boots from: dir_of has none that there is no way to run here.
prepare() { # GUEST
	local dir why log=$out/$1.log

	why=$(lack "$1")
	if test "$why"; then
		printf 'suite guest\nskip %s: %s\n' "$1" "$why" | tee "$log" | show "$1"
	elif ! dir=$(fetch "$1" 2>"$out/$1.fetch"); then
		printf 'suite guest\nskip boot: it cannot be had: %s\n' "$(tail -n 1 "$out/$1.fetch")" |
			tee "$log" | show "$1"
	else
		dir_of[$1]=$dir
	fi
}

# One guest, from the beginning to the end: one that does not come there has failed.
run_guest() { # GUEST DIR
	local log=$out/$1.log

	boot "$1" "$2" "$out/$1.console" | tee "$log" | show "$1"
	if ! grep -qx 'guest done' "$log"; then
		printf 'suite guest\nFAIL boot: it did not come to its end\n' | tee -a "$log" | show "$1"
		tail -n 50 "$log" "$out/$1.console" | sed "s/^/$1  /"
	fi
}

# How many guests there may be at a time where @GUEST is one.
at_once() { # GUEST DIR
	case $1 in
	systemd) echo 1 ;;
	arm64) nproc ;;
	*) if test "$(vm_accel "$(vm_vmlinuz "$2")")" = kvm; then echo 1; else nproc; fi ;;
	esac
}

# Waits until fewer than @N guests run.
room_for() { # N
	while test "$(jobs -pr | wc -l)" -ge "$1"; do wait -n; done
}

# Counts @VERDICT in guests' logs.
tally() { # VERDICT LOG...
	cat "${@:2}" | grep -c "^$1 "
}

table() { # GUEST...
	local guest logs=()

	for guest; do logs+=("$out/$guest.log"); done
	awk -f tests/night/vm/table.awk "${logs[@]}" | tee "$out/table"
	passed=$(tally ok "${logs[@]}") failed=$(tally FAIL "${logs[@]}") skipped=$(tally skip "${logs[@]}")
	printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
	test "$failed" -eq 0 && test "$passed" -gt 0 || return 1
	test "${PROFIL_TEST_ALLOW_SKIP:-0}" = 1 || ! grep -q '^skip boot: ' "${logs[@]}"
}

mkdir -p "$out"
rm -f "$out/accel"
for guest; do
	prepare "$guest"
done
for guest; do
	test "${dir_of[$guest]:-}" || continue # it has its line
	n=$(at_once "$guest" "${dir_of[$guest]}")
	room_for "$n"
	run_guest "$guest" "${dir_of[$guest]}" &
	test "$n" -gt 1 || wait
done
wait
table "$@"
