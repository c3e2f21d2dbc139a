#!/bin/bash
# replay-headers.sh - the dialects' headers in every C and C++, two in one program, and static links
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

# Prints what the compiler says where it does not take the old programs' calls without a word.
takes() { # DIALECT LANGUAGE COMPILER...
	local name=${1^^} include=include/profil/$1 language=$2

	shift 2
	"$@" -Wall -Wextra -Werror -pedantic "-D$name" "-I$include" -fsyntax-only -x "$language" \
		tests/conformance/calls.c 2>&1 | head -n 3
}

for d in aix irix darwin solaris v7; do
	said=
	for std in c89 gnu89 c99 c11 c17 c2x gnu17; do
		said+=$(takes "$d" c "${CC:-gcc}" -std=$std -Wno-address -Wno-strict-prototypes)
	done
	if test -z "$said"; then ok "$d: calls as old programs have them, C89 to C23"; else
		fail "$d: calls as old programs have them, C89 to C23" "$said"
	fi
	if ! command -v g++ >/dev/null; then
		skip "$d: calls as old programs have them, C++98 to C++20" "no g++: sudo make deps"
		continue
	fi
	said=
	for std in c++98 c++11 c++17 c++20 gnu++17; do
		said+=$(takes "$d" c++ g++ -std=$std -Wno-address)
	done
	if test -z "$said"; then ok "$d: calls as old programs have them, C++98 to C++20"; else
		fail "$d: calls as old programs have them, C++98 to C++20" "$said"
	fi
done

# One file's profil is Solaris's, the other's Darwin's: a scale of 65537 tells them apart.
cat >"$dir/solaris.c" <<'C'
#include <unistd.h>
int one(void);
int one(void)
{
	static unsigned short counters[8];
	return profil(counters, sizeof(counters), 0, 0x10001);
}
C
cat >"$dir/darwin.c" <<'C'
#include <errno.h>
#include <unistd.h>
int one(void);
int main(void)
{
	static char counters[16];
	if (one() != 0)
		return 1;
	return profil(counters, sizeof(counters), 0, 0x10001) == -1 && errno == EINVAL ? 0 : 2;
}
C
# And glibc's, with nothing of ours said at all.
cat >"$dir/glibc.c" <<'C'
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	static unsigned short counters[8];
	int ret = profil(counters, sizeof(counters), 0x10000000, 0x10000);
	printf("%d %u\n", ret, counters[2]);
	return 0;
}
C
san=(${SAN:+-fsanitize="$SAN"})
compile() { # OUT ARGS...
	"${CC:-gcc}" "${san[@]}" -o "$dir/$1" "${@:2}"
}
both() {
	compile solaris.o -c -Iinclude/profil/solaris "$dir/solaris.c" &&
		compile darwin.o -c -Iinclude/profil/darwin "$dir/darwin.c" &&
		compile both "$dir/darwin.o" "$dir/solaris.o" "-L$BUILD" -lprofil
}

echo '0x10000004 7' >"$dir/ticks"
daemon_start
export LD_LIBRARY_PATH=$PWD/$BUILD
check "two files of a program have two dialects" both
check "and each behaves as its own" "$dir/both"

check "a program links with the archive" compile glibc "$dir/glibc.c" "$BUILD/libprofil.a"
check "and is profiled" test "$("$dir/glibc")" = "0 7"
if test -n "${SAN:-}"; then
	skip "a static program is profiled" "the sanitizers link no static programs"
else
	check "a program links statically" compile static -static "$dir/glibc.c" "$BUILD/libprofil.a"
	check "a static program is profiled" test "$("$dir/static")" = "0 7"
fi

# Names that functions of x86 call, not those of other machines.
case $(uname -m) in
x86_64) elsewhere=none ;;
*) elsewhere='mcount\|__fentry__' ;;
esac
check "the library exports the public names and no others" test "$(nm -D --defined-only \
	"$BUILD/libprofil.so.1" | awk '{ print $3 }' | sort | tr '\n' ' ')" = "$(sed -n 's/^\t\([a-z_].*\);$/\1/p' \
	src/libprofil/libprofil.map | grep -vx "$elsewhere" | sort | tr '\n' ' ')"
daemon_stop
finish
