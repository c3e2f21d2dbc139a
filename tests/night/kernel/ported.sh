#!/bin/bash
# ported.sh - programs in the style of their systems compile with -I and -lprofil, and count right
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

# ok when the output's line "NAME TICKS PERCENT%", or the mean of these lines, is within 6 points of PERCENT: of 4000
# ticks, eight standard deviations, and four (1 in 16,000) where each correction counts four ticks at one place, as on
# a machine whose CPUs are all in use.
about() { # PROGRAM NAME PERCENT
	if awk -v name="$2" -v want="$3" '$1 ~ "^" name { got += $3; n += $2; lines++ }
		END { exit !(n > 0 && got / lines > want - 6 && got / lines < want + 6) }' "$dir/said"; then
		ok "$2 has about $3 % of the $1 program"
	else
		fail "$2 has about $3 % of the $1 program" "$(cat "$dir/said")"
	fi
}

daemon_start --rate 1000
for name in aix darwin glibc solaris; do
	flags=()
	test "$name" = glibc || flags=("-Iinclude/profil/$name")
	if build "$name" "${flags[@]}" && runs "$name" 4; then
		about "$name" heavy 70
		about "$name" light 30
	fi
done
# shellcheck disable=SC2016 # awk's own variables, here and below
check "clock() of the solaris program returns the CPU time" awk '$1 == "clock" { ok = $2 > 700 && $2 < 1300 }
	END { exit !ok }' "$dir/said"
# A run has some 900 ticks.
if build v7 -std=gnu89 -Iinclude/profil/v7 -include unistd.h; then
	for _ in 1 2 3 4; do
		runs v7 || break
		cat "$dir/said" >>"$dir/turns"
	done
	mv "$dir/turns" "$dir/said" && about v7 heavy 70
fi
if build irix -Iinclude/profil/irix -lm && runs irix 4; then
	about irix libm 46
	about irix main 53
	check "a tick of the irix program is 1 ms" grep -q '^tick 1000 us' "$dir/said"
fi
daemon_stop
finish
