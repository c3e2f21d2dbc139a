#!/bin/bash
# recorded_stacks.sh - recordings with stacks: of a recursion, of an inlined function, of a copy in the kernel
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck disable=SC2154 # dir is lib.sh's

ctl=$(realpath "$BUILD/profilctl")
levels=$dir/levels
"${CC:-gcc}" -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -fPIE -pie -o "$levels" tests/programs/levels.c || exit 1

# Records into $dir/FILE. FAIL when the status of profilctl is not 0; no earlier recording is left then.
record() { # FILE OPTION... -- COMMAND...
	rm -f "$dir/$1"
	"$ctl" record -q -g -F 999 -o "$dir/$1" "${@:2}" 2>"$dir/err" || fail "record -g $*" "$(cat "$dir/err")"
}

record_recursion() { # FILE OPTION...
	record "$@" -- "$levels" 1 40 1
}

# Into $dir/folded.

record_inlined() {
	cat >"$dir/inlined.c" <<-'END'
		static volatile unsigned long spun;

		static inline __attribute__((always_inline)) void inner(unsigned long n)
		{
			while (n--)
				spun++;
		}

		__attribute__((noipa)) void outer(unsigned long n)
		{
			inner(n);
		}

		int main(void)
		{
			for (int i = 0; i < 2000; i++)
				outer(1000000);
			return 0;
		}
	END
	"${CC:-gcc}" -O2 -g -fomit-frame-pointer -o "$dir/inlined" "$dir/inlined.c" || exit 1
	record folded -f folded --user-only -- "$dir/inlined"
}

# Reads of /dev/zero use CPU time in the kernel, below read(), in libc. Into $dir/folded.
record_copy() { # OPTION...
	record folded -f folded "$@" -- dd if=/dev/zero of=/dev/null bs=1M count=8000 status=none
}

# Inclusive samples of three functions of the recursion in $dir/json, in the order of their names.
by_json() {
	python3 -c '
import collections, json, sys
stacks = json.load(open(sys.argv[1]))["stacks"]
roots, inclusive = len(stacks["ends"]), collections.Counter()
for node in stacks["nodes"]:
    count, on_path = node[4], set()
    while True:
        on_path.add(stacks["frames"][node[1]][0])
        if node[0] < roots:
            break
        node = stacks["nodes"][node[0] - roots]
    for name in on_path:
        inclusive[name] += count
for name in "leaf", "main", "recur":
    print(name, inclusive[name])' "$dir/json"
}
