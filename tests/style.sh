#!/bin/bash
# style.sh - holds the sources to the project's rules: layers, sizes, headers, layout
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/system/lib.sh"

mapfile -t sources < <(find src bpf include tests -name '*.[ch]' | sort)
mapfile -t headers < <(find src bpf include tests -name '*.h' | sort)
mapfile -t scripts < <(find tests .ci -name '*.sh' -o -path .ci/run | sort)
mapfile -t pages < <(find src -name '*.[1-8]' | sort)

# FAIL with the lines that $2 found, ok when there are none.
none() { # NAME FOUND
	if test -z "$2"; then ok "$1"; else fail "$1" $'\n'"$2"; fi
}

# Prints the file that a quoted include means.
resolve() { # FROM NAME
	local d

	for d in "${1%/*}" src include .; do
		if test -e "$d/$2"; then
			realpath --relative-to=. "$d/$2"
			return
		fi
	done
	echo "$2" # generated
}

# Says whether $1 may include $2: downwards only.
may_include() { # FROM WHAT
	case $1:$2 in
	bpf/*:bpf/* | bpf/*:src/core/bin.h | bpf/*:src/core/layout.h | bpf/*:src/core/arch.h) ;;
	bpf/*) return 1 ;;
	src/core/*:src/core/*) ;;
	src/core/*) return 1 ;;
	src/*:src/core/*) ;;
	src/libprofil/*:src/libprofil/* | src/libprofil/*:include/*) ;;
	src/profild/*:src/profild/* | src/profild/*:bpf/*.skel.h) ;;
	src/profilctl/*:src/profilctl/*) ;;
	src/*) return 1 ;;
	include/*:include/*) ;;
	include/*) return 1 ;;
	esac
}

upward_includes() {
	local file line name what

	while IFS=: read -r file line name; do
		name=${name#*\"} name=${name%%\"*}
		what=$(resolve "$file" "$name")
		may_include "$file" "$what" || echo "$file:$line: includes $what"
	done < <(grep -Hn '^#[ ]*include "' "${sources[@]}")
	grep -Hn '^#[ ]*include <profil' "${sources[@]}" |
		grep -v -e ^src/libprofil/ -e ^include/ -e ^tests/
}

long_functions() {
	awk '/^{/ { start = FNR }
		/^}/ && start { if (FNR - start - 1 > 60) print FILENAME ":" start ": " FNR - start - 1 " lines"; start = 0 }' "$@"
}

long_files() {
	wc -l "$@" | awk '$2 != "total" && $1 > 600 { print $2 ": " $1 " lines" }'
}

unnamed_files() {
	local f n

	for f; do
		n=${f##*/}
		case $f in
		*.sh | .ci/run) sed -n 2p "$f" | grep -q "^# $n - ." ;;
		*) head -n 1 "$f" | grep -q "^/\* $n - ." ;;
		esac || echo "$f"
	done
}

# Prints the guard of each file.
guards() { # FILE...
	sed -n 's/^#ifndef \(PROFIL_\([A-Z0-9_]*_\)\?H\)$/\1/p' "$@"
}

unguarded() {
	local f d guard

	for f; do
		guard=$(guards "$f")
		test "$guard" && grep -qx "#define $guard" "$f" || echo "$f"
	done
	for d in src/*/; do # what one file can include
		mapfile -t seen < <(printf '%s\n' src/core/*.h bpf/*.h "$d"*.h | sort -u)
		guards "${seen[@]}" | sort | uniq -d
	done
}

# Compiles a file that is nothing but the header.
alone() { # HEADER COMPILER...
	local header=$1

	shift
	printf '#include <%s>\nextern int alone;\n' "$header" |
		"$@" -Wall -Werror -fsyntax-only - || echo "$header: $*"
}

# Headers that need another one before them; the public ones in every language that may use them.
dependent() {
	local f name own std

	for f; do
		name=${f#include/} own=
		case $f in
		include/profil/*) # a dialect's directory comes before the system's
			name=${name#profil/*/} own=-I${f%/"$name"}
			;;
		bpf/*) continue ;;
		src/* | tests/*)
			alone "$f" gcc -std=gnu11 -D_GNU_SOURCE -Wextra -I. -Isrc -Iinclude -I"$BUILD" -x c
			continue
			;;
		esac
		for std in c89 c99 c11 c2x gnu89 gnu11; do
			alone "$name" gcc -std=$std ${own:+"$own"} -Iinclude -x c
		done
		for std in c++98 c++20 gnu++17; do
			alone "$name" g++ -std=$std ${own:+"$own"} -Iinclude -x c++
		done
	done 2>&1
}

# $2 runs, or is skipped where the machine lacks the tool.
with() { # TOOL NAME COMMAND...
	local tool=$1 name=$2

	shift 2
	if command -v "$tool" >/dev/null; then
		check "$name" "$@"
	else
		skip "$name" "no $tool: sudo make deps"
	fi
}

none "includes point one way" "$(upward_includes)"
none "no function over 60 lines" "$(long_functions "${sources[@]}")"
none "no file over 600 lines" "$(long_files "${sources[@]}" "${scripts[@]}")"
none "every file begins with its name and what it is" "$(unnamed_files "${sources[@]}" "${scripts[@]}")"
none "every header is guarded, each by its own name" "$(unguarded "${headers[@]}")"
none "architectures are told apart in one place" \
	"$(grep -nE '__(x86_64|i386|aarch64|arm)__|__TARGET_ARCH_' src bpf -r --include='*.[ch]' | grep -v ^src/core/arch.h:)"
none "no goto outside of bpf/" "$(grep -nw 'goto' src include -r --include='*.[ch]')"
none "headers stand alone" "$(dependent "${headers[@]}")"
with clang-format "sources are laid out by clang-format" clang-format --dry-run -Werror "${sources[@]}"
with shellcheck "scripts pass shellcheck" shellcheck -x "${scripts[@]}"
if test ${#pages[@]} -gt 0; then
	with mandoc "man pages pass mandoc" mandoc -Tlint -Wwarning "${pages[@]}"
fi
finish
