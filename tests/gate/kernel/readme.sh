#!/bin/bash
# readme.sh - the README's program, built and run as the README says, and the examples that need the kernel
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

# Says whether the program's samples are its time in hundredths of a second: at least its CPU time, at
# most the elapsed time, because other processes on a busy machine may run between two ticks.
counts_its_time() { # COMMAND...
	local said samples least most
	local TIMEFORMAT='%U %S %R'

	said=$({ time "$@" >"$dir/out" 2>&1; } 2>&1) || return 1
	samples=$(awk '/ samples$/ { print $1 }' "$dir/out")
	read -r least most < <(awk '{ printf "%d %d", 90 * ($1 + $2), 102 * $3 + 2 }' <<<"$said")
	echo "$(cat "$dir/out"), not from $least to $most"
	test "${samples:-0}" -ge "$least" && test "$samples" -le "$most"
}

# shellcheck disable=SC2016 # Markdown's quotes, not the shell's
sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d' >"$dir/spin.c"
check "the README has a program" test -s "$dir/spin.c"
check "the README's program builds with libprofil" cc ${SAN:+-fsanitize="$SAN"} -o "$dir/linked" \
	"$dir/spin.c" -L"$BUILD" -lprofil -Wl,-rpath,"$PWD/$BUILD"
check "the README's program builds without libprofil" cc -o "$dir/plain" "$dir/spin.c"
daemon_start
check "the linked program counts its CPU time" counts_its_time "$dir/linked"
check "the program with libprofil preloaded counts its CPU time" counts_its_time \
	env LD_PRELOAD="${PROFIL_PRELOAD:-$PWD/$BUILD/libprofil.so.1}" "$dir/plain"
# tests/gate/style.sh runs the others.
prints "the examples of README and the man pages that need the kernel run" "" \
	python3 tests/lib/examples.py kernel "$BUILD/profilctl"
daemon_stop
PROFIL_SOCKET=$dir/no-daemon
said=$("$dir/linked" 2>&1)
check "profil() fails with ENOSYS without a daemon" test "$said" = "profil: Function not implemented"
finish
