#!/bin/bash
# kernel-ported.sh - programs in the style of their systems compile with -I and -lprofil, and are right
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

# What each system's makefile would say, and nothing else of ours than -I and -lprofil.
build() { # PROGRAM FLAGS...
	local name=$1 said

	shift
	said=$("${CC:-gcc}" -w ${SAN:+-fsanitize="$SAN"} -o "$dir/$name" "tests/ported/$name.c" "$@" \
		"-L$BUILD" -lprofil "-Wl,-rpath,$PWD/$BUILD" 2>&1) || fail "$name.c compiles" "$said"
	test -x "$dir/$name"
}

# Runs a program and says whether a line "NAME TICKS PERCENT%" has about the percentage it should.
runs() { # PROGRAM ARGS...
	(cd "$dir" && "./$1" "${@:2}") >"$dir/said" 2>&1 && return
	fail "$1 runs" "$(cat "$dir/said")"
	return 1
}

about() { # PROGRAM NAME PERCENT
	if awk -v name="$2" -v want="$3" '$1 ~ "^" name { got = $3 + 0; n = $2 }
		END { exit !(n > 0 && got > want - 6 && got < want + 6) }' "$dir/said"; then
		ok "$1: $2 has about $3 %"
	else
		fail "$1: $2 has about $3 %" "$(cat "$dir/said")"
	fi
}

daemon_start --rate 1000
for name in aix darwin glibc solaris; do
	flags=()
	test "$name" = glibc || flags=("-Iinclude/profil/$name")
	if build "$name" "${flags[@]}" && runs "$name" 1; then
		about "$name" heavy 70
		about "$name" light 30
	fi
done
# shellcheck disable=SC2016 # awk's own variables, here and below
check "solaris: the clock counts the CPU time" awk '$1 == "clock" { ok = $2 > 700 && $2 < 1300 }
	END { exit !ok }' "$dir/said"
build v7 -std=gnu89 -Iinclude/profil/v7 -include unistd.h && runs v7 && about v7 heavy 70
if build irix -Iinclude/profil/irix -lm && runs irix 2; then
	# shellcheck disable=SC2016
	check "irix: the mathematical library has half" awk '$1 ~ /^libm/ { ok = $3 + 0 > 35 }
		END { exit !ok }' "$dir/said"
	# shellcheck disable=SC2016
	check "irix: the program has the other half" awk '$1 == "main" { ok = $3 + 0 > 40 && $3 + 0 < 65 }
		END { exit !ok }' "$dir/said"
	check "irix: a tick is a millisecond" grep -q '^tick 1000 us' "$dir/said"
fi
daemon_stop
finish
