#!/bin/bash
# headers.sh - the dialects' headers in every C and C++ standard, two in one program, static links
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

# Prints the compiler's messages about the calls of historical programs: none when it accepts them.
takes() { # DIALECT LANGUAGE COMPILER...
	local name=${1^^} include=include/profil/$1 language=$2

	shift 2
	"$@" -Wall -Wextra -Werror -pedantic "-D$name" "-I$include" -fsyntax-only -x "$language" \
		tests/gate/conformance/calls.c 2>&1 | head -n 3
}

for d in aix irix darwin solaris v7; do
	said=
	for std in c89 gnu89 c99 c17 c2x; do
		said+=$(takes "$d" c "${CC:-gcc}" -std=$std -Wno-address -Wno-strict-prototypes)
	done
	if test -z "$said"; then ok "historical calls of the $d dialect compile in C89 to C23"; else
		fail "historical calls of the $d dialect compile in C89 to C23" "$said"
	fi
	if ! command -v g++ >/dev/null; then
		lacks "historical calls of the $d dialect compile in C++98 to C++20" "g++"
		continue
	fi
	said=
	for std in c++98 c++17 c++20; do
		said+=$(takes "$d" c++ g++ -std=$std -Wno-address)
	done
	if test -z "$said"; then ok "historical calls of the $d dialect compile in C++98 to C++20"; else
		fail "historical calls of the $d dialect compile in C++98 to C++20" "$said"
	fi
done

# Prints the compiler's messages about a program that declares profil() itself, in way number OWN.
declares() { # DIALECT LANGUAGE OWN COMPILER...
	local name=${1^^} include=include/profil/$1 language=$2 own=$3

	shift 3
	"$@" -Wall -Wextra -Werror "-D$name" "-DOWN=$own" "-I$include" -fsyntax-only -x "$language" \
		-Wno-address tests/gate/conformance/prototypes.c 2>&1 | head -n 3
}

# C++ and C23 have no declaration without a prototype, and an empty one there is «(void)».
for d in aix irix darwin solaris v7; do
	said=
	for own in {0..12}; do
		for compiler in "${CC:-gcc} -pedantic -std=c89" "clang -std=gnu17 -Wno-unknown-warning-option -Wno-deprecated-non-prototype"; do
			command -v "${compiler%% *}" >/dev/null || continue
			# shellcheck disable=SC2086 # a compiler and its options
			said+=$(declares "$d" c "$own" $compiler)
		done
		case $own in 9 | 10 | 11) continue ;; esac
		for compiler in "c ${CC:-gcc} -std=c2x" "c++ g++ -pedantic -std=c++98" \
			"c++ clang++ -std=gnu++17"; do
			command -v "$(cut -d' ' -f2 <<<"$compiler")" >/dev/null || continue
			# shellcheck disable=SC2086
			said+=$(declares "$d" ${compiler%% *} "$own" ${compiler#* })
		done
	done
	if test -z "$said"; then ok "a program may declare profil() itself beside the $d header"; else
		fail "a program may declare profil() itself beside the $d header" "$said"
	fi
done

# One file has Solaris's profil(), the other Darwin's: they treat a scale of 65537 differently.
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
# glibc's, without any header of libprofil.
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
check "two files of a program may use two dialects" both
check "each file's profil() keeps the rules of its dialect" "$dir/both"

check "a program links with libprofil.a" compile glibc "$dir/glibc.c" "$BUILD/libprofil.a"
check "a program linked with libprofil.a is profiled" test "$("$dir/glibc")" = "0 7"
if test -n "${SAN:-}"; then
	skip "a static program is profiled" "the sanitizers link no static programs"
else
	for name in __write_profiling __moncontrol; do
		printf 'void %s(int);\nint main(void)\n{\n\t%s(0);\n\treturn 0;\n}\n' $name $name >"$dir/gmon.c"
		check "a static program that calls glibc's $name links with libprofil.a" compile gmon -static -pg "$dir/gmon.c" "$BUILD/libprofil.a"
	done
	check "a static program links with libprofil.a" compile static -static "$dir/glibc.c" "$BUILD/libprofil.a"
	check "a static program is profiled" test "$("$dir/static")" = "0 7"
fi

# Only x86 has mcount and __fentry__ among the exported names.
case $(uname -m) in
x86_64) elsewhere=none ;;
*) elsewhere='mcount\|__fentry__' ;;
esac
check "the library exports the public names and no others" test "$(nm -D --defined-only \
	"$BUILD/libprofil.so.1" | awk '{ print $3 }' | sort | tr '\n' ' ')" = "$(sed -n 's/^\t\([a-z_].*\);$/\1/p' \
	src/libprofil/libprofil.map | grep -vx "$elsewhere" | sort | tr '\n' ' ')"
daemon_stop
finish
