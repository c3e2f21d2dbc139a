#!/bin/bash
# kernel-readme.sh - the README's program, built and run as the README says
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

# Says whether the ticks that the program counted are its time in hundredths of a second: at least
# the CPU time, at most the time that went by, as others on a busy machine may hide between ticks.
counts_its_time() { # COMMAND...
	local said ticks least most
	local TIMEFORMAT='%U %S %R'

	said=$({ time "$@" >"$dir/out" 2>&1; } 2>&1) || return 1
	ticks=$(awk '/ ticks$/ { print $1 }' "$dir/out")
	read -r least most < <(awk '{ printf "%d %d", 90 * ($1 + $2), 102 * $3 + 2 }' <<<"$said")
	echo "$(cat "$dir/out"), not from $least to $most"
	test "${ticks:-0}" -ge "$least" && test "$ticks" -le "$most"
}

# shellcheck disable=SC2016 # Markdown's quotes, not the shell's
sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d' >"$dir/spin.c"
check "there is a program" test -s "$dir/spin.c"
check "it is built with the library" cc ${SAN:+-fsanitize="$SAN"} -o "$dir/linked" \
	"$dir/spin.c" -L"$BUILD" -lprofil -Wl,-rpath,"$PWD/$BUILD"
check "it is built without" cc -o "$dir/plain" "$dir/spin.c"
daemon_start
check "linked, it counts its CPU time" counts_its_time "$dir/linked"
check "preloaded, it counts its CPU time" counts_its_time \
	env LD_PRELOAD="${PROFIL_PRELOAD:-$PWD/$BUILD/libprofil.so.1}" "$dir/plain"
daemon_stop
PROFIL_SOCKET=$dir/nobody
said=$("$dir/linked" 2>&1)
check "without a daemon the call fails with ENOSYS" test "$said" = "profil: Function not implemented"
finish
