#!/bin/bash
# ported.sh - programs in the style of their systems compile with -I and -lprofil, and run
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

# Builds with the flags of each system's makefile; -I and -lprofil are all that is added.
build() { # PROGRAM FLAGS...
	local name=$1 said

	shift
	said=$("${CC:-gcc}" -w ${SAN:+-fsanitize="$SAN"} -o "$dir/$name" "tests/programs/ported/$name.c" "$@" \
		"-L$BUILD" -lprofil "-Wl,-rpath,$PWD/$BUILD" 2>&1) || fail "$name.c compiles" "$said"
	test -x "$dir/$name"
}

# Runs a program, with its output in $dir/said.
runs() { # PROGRAM ARGS...
	(cd "$dir" && "./$1" "${@:2}") >"$dir/said" 2>&1 && return
	fail "$1 runs" "$(cat "$dir/said")"
	return 1
}

daemon_start --rate 1000
for name in aix darwin glibc solaris; do
	flags=()
	test "$name" = glibc || flags=("-Iinclude/profil/$name")
	if build "$name" "${flags[@]}" && runs "$name" 1; then ok "the $name program compiles and runs"; fi
done
# shellcheck disable=SC2016 # awk's own variables
check "clock() of the solaris program returns CPU time" awk '$1 == "clock" { ok = $2 > 0 } END { exit !ok }' "$dir/said"
if build v7 -std=gnu89 -Iinclude/profil/v7 -include unistd.h && runs v7; then ok "the v7 program compiles and runs"; fi
if build irix -Iinclude/profil/irix -lm && runs irix 1; then
	check "a tick of the irix program is 1 ms" grep -q '^tick 1000 us' "$dir/said"
fi
daemon_stop
finish
