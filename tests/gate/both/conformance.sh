#!/bin/bash
# conformance.sh - a program for each dialect, written from its manual alone, finds the manual's promises kept
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

from=tests/gate/conformance

# Builds without PIE: the replayed ticks name an address in the program.
build() { # PROGRAM SOURCE FLAGS...
	local out=$dir/$1 source=$2 said

	shift 2
	if ! said=$("${CC:-gcc}" -std=gnu99 -D_GNU_SOURCE -O2 -no-pie -fno-pie ${SAN:+-fsanitize="$SAN"} -Wall -Wextra -Werror \
		-o "$out" "$from/$source.c" "$from/facts.c" "$@" 2>&1); then
		fail "$source.c compiles" "$said"
		return 1
	fi
}

# Prints the ticks that facts.h describes, those at hot() first.
ticks_for() { # PROGRAM
	nm "$dir/$1" | awk '$3 == "hot" { print "0x" $1, 50 }'
	printf '0x%x %d\n' 0x10000000 3 0x10000001 1 0x10000004 2 0x10000008 5 0x10000100 7 \
		0x20000000 70000 0x30000000 9
}

# Counts a program's verdicts as the script's own.
pass_on() { # PROGRAM
	local line

	while read -r line; do
		case $line in
		ok\ *) ok "$1: ${line#ok }" ;;
		skip\ *) skip "$1: ${line#skip }" "over ${PROFIL_TEST_OVER:-replay}" ;;
		FAIL\ *) fail "$1" "${line#FAIL }" ;;
		esac
	done
}

# Runs PROGRAM with a profild of its own.
try() { # PROGRAM [DAEMON_ARGS...]
	local program=$1

	shift
	ticks_for "$program" >"$dir/ticks"
	daemon_start "$@"
	(cd "$dir" && FACTS_OVER=${PROFIL_TEST_OVER:-replay} "${as[@]}" "./$program") >"$dir/said" 2>&1
	grep -q '^[0-9]* passed, ' "$dir/said" || fail "$program runs to its end" "$(cat "$dir/said")"
	pass_on "$program" <"$dir/said"
	daemon_stop
}

# Shows the facts that libc's own profil() breaks; they are no failures.
try_libc() {
	build libc glibc || return
	(cd "$dir" && FACTS_OVER=libc ./libc) >"$dir/said" 2>&1
	grep '^FAIL ' "$dir/said" | sed "s/^FAIL /libc's own profil fails: /"
	check "libc's own profil counts" grep -q '^ok counts where' "$dir/said"
	check "libc's own profil breaks some of the facts" grep -q '^FAIL ' "$dir/said"
}

# Every user can read and write $dir.
cp "$BUILD/libprofil.so.1" "$dir"
export LD_LIBRARY_PATH=$dir
library=("-L$BUILD" -lprofil)
as=()
chmod 777 "$dir"

build glibc glibc "${library[@]}" && try glibc
build irix irix -Iinclude/profil/irix "${library[@]}" && try irix
if over_kernel; then
	try_libc
	finish
fi

for d in aix darwin solaris v7; do
	build "$d" "$d" "-Iinclude/profil/$d" "${library[@]}" && try "$d"
done

# Once more with a daemon that keeps the fast clock for root.
test "$(id -u)" -ne 0 || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
export FACTS_FAST=no
try irix --restrict-fast
finish
