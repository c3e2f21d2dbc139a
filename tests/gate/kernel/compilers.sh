#!/bin/bash
# compilers.sh - the BPF programs of another clang than the build's: compiled without a warning, loaded, counting
#
# Debian 12 has clang-19 beside its default, clang-14. The nightly run tries the compilers of other releases.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

clang="clang-19"
tree=$BUILD/$clang

built() { # TARGET
	env -u MAKEFLAGS -u MAKELEVEL CLANG="$clang" make -s -j2 B="$tree" SAN= "$tree/$1" >"$dir/words" 2>&1 || {
		cat "$dir/words"
		return 1
	}
}

needs "$clang" "$clang compiles the BPF programs"
check "$clang compiles the BPF programs" built bpf/profil.bpf.o
check "$clang compiles the BPF programs without a warning" test -z "$(grep warning: "$dir/words")"
check "the BPF programs of $clang need no more stack than Linux 6.1 allows" python3 tests/gate/bpf_stack.py "$tree/bpf/profil.bpf.o"
check "profild is built with the BPF programs of $clang" built profild
ln -sf ../profilctl "$tree/profilctl"

BUILD=$tree
daemon_start
sh -c 'while :; do :; done' &
busy=$!
attach_until 10 -g -f json -o "$dir/json" "$busy"
kill "$busy"
check "the BPF programs of $clang count samples and walk stacks" jq -e \
	'.samples | .binned > 0 and .total == .binned + .unmatched + .lost' "$dir/json"
daemon_stop
finish
