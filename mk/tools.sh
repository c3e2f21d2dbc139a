#!/bin/sh
# tools.sh - looks for the tools and libraries of the build, and names the packages of the missing ones
#
# usage: mk/tools.sh build|tests
status=0

lack() { # WHAT PACKAGE
	echo "make: $1 is missing: run 'sudo make deps' or 'apt-get install $2'" >&2
	status=1
}

tool() { # COMMAND PACKAGE
	command -v "$1" >/dev/null 2>&1 || lack "$1" "$2"
}

library() { # NAME PACKAGE
	"${PKG_CONFIG:?}" --exists "$1" 2>/dev/null || lack "library $1" "$2"
}

header() { # NAME PACKAGE
	# shellcheck disable=SC2086 # the compiler may have options
	echo "#include <$1>" | ${CC:?} -fsyntax-only -x c - 2>/dev/null || lack "header $1" "$2"
}

case ${1:?usage: mk/tools.sh build|tests} in
build)
	tool "${CC%% *}" gcc
	tool "${CLANG:?}" clang
	tool "${BPFTOOL:?}" bpftool
	tool "${PKG_CONFIG:?}" pkg-config
	library libbpf libbpf-dev
	library libsystemd libsystemd-dev
	library libmicrohttpd libmicrohttpd-dev
	library libdw libdw-dev
	library libelf libelf-dev
	library zlib zlib1g-dev
	library jansson libjansson-dev
	library libdebuginfod libdebuginfod-dev
	library ncursesw libncurses-dev
	header libiberty/demangle.h libiberty-dev
	;;
tests) library criterion libcriterion-dev ;;
esac
exit $status
