#!/bin/sh
# missing.sh - prints those lines of the named lists of vendor/packages/ whose tool or library is not there
#
# usage: mk/missing.sh LIST...
#
# What the build needs is looked for itself, so a library that was installed from source is there. The
# other packages are looked for by their names, where there is dpkg.
cd "$(dirname "$0")/../vendor/packages" || exit 1

library_dirs() {
	echo "${PKG_CONFIG_PATH:-}" | tr : '\n'
	printf '%s\n' /usr/lib/pkgconfig /usr/lib64/pkgconfig /usr/share/pkgconfig /usr/lib/*/pkgconfig \
		/usr/local/lib/pkgconfig /usr/local/lib64/pkgconfig /usr/local/share/pkgconfig
}

# Without pkg-config, which may itself be missing, by the file that it would read.
has_library() { # NAME
	if command -v "${PKG_CONFIG:-pkg-config}" >/dev/null 2>&1; then
		"${PKG_CONFIG:-pkg-config}" --exists "$1" 2>/dev/null
	else
		library_dirs | while read -r place; do test ! -e "$place/$1.pc" || echo found; done | grep -q found
	fi
}

has_header() { # NAME
	if command -v "${CC%% *}" >/dev/null 2>&1; then
		# shellcheck disable=SC2086 # the compiler may have options
		echo "#include <$1>" | $CC -fsyntax-only -x c - 2>/dev/null
	else
		test -e "/usr/include/$1" || test -e "/usr/local/include/$1"
	fi
}

has_package() { # NAME
	# shellcheck disable=SC2016 # dpkg-query's variable
	! command -v dpkg-query >/dev/null 2>&1 ||
		dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}

# The tools of make's variables are what the variables say.
has_tool() { # NAME
	case $1 in
	clang) set -- "${CLANG:-clang}" ;;
	bpftool) set -- "${BPFTOOL:-bpftool}" ;;
	pkg-config) set -- "${PKG_CONFIG:-pkg-config}" ;;
	esac
	command -v "$1" >/dev/null 2>&1
}

# Whether one of NAME,NAME... is there.
there() { # PACKAGE KIND NAMES
	case $2 in
	tool) has_tool "$3" ;;
	library) has_library "$3" ;;
	header) for name in $(echo "$3" | tr , ' '); do has_header "$name" && return; done; return 1 ;;
	*) has_package "$1" ;;
	esac
}

CC=${CC:-cc}
arch=$(dpkg --print-architecture 2>/dev/null)
cat "${@:?usage: mk/missing.sh LIST...}" | sed 's/#.*//' | while read -r debian fedora arch_linux kind name; do
	test -n "$debian" || continue
	case $fedora in "[$arch]" | '' | [!\[]*) ;; *) continue ;; esac
	there "$debian" "$kind" "$name" || echo "$debian $fedora $arch_linux $kind $name"
done
