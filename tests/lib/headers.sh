#!/bin/bash
# headers.sh - which headers need another one before them

# Compiles a file that only includes the header.
alone() { # HEADER COMPILER...
	local header=$1

	shift
	printf '#include <%s>\nextern int alone;\n' "$header" |
		"$@" -Wall -Werror -fsyntax-only - || echo "$header: $*"
}

# Prints headers that need another one before them; public ones in every language standard.
dependent() { # HEADER...
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
