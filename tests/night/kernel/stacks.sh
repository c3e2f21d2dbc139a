#!/bin/bash
# stacks.sh - stacks of real programs: whole and exact, by .eh_frame, and by .debug_frame where that is all
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl

# ok when at least 95 % of a program's stacks reach the start of their thread and go through FUNCTION. What
# is not whole are the samples of the first milliseconds, before the rules are made: 2 of 300, so that
# 15 would be one run in 10^8.
unwinds() { # NAME FUNCTION PROGRAM
	local whole through

	"$ctl" record -F 499 -g -o "$dir/profile" -- "$3" 2>"$dir/err" || { fail "$1" "$(cat "$dir/err")"; return; }
	"$ctl" report --tree "$dir/profile" >"$dir/tree"
	whole=$(sed -n 's/^ *\([0-9]*\)\.[0-9]* % of the stacks reach the start of their thread$/\1/p' "$dir/tree")
	through=$("$ctl" report --callers "$2" "$dir/profile" | sed -n "s/^ *\([0-9]*\)\.[0-9]* %.* $2$/\1/p" | head -n 1)
	if test "${whole:-0}" -ge 95 && test "${through:-0}" -ge 90; then
		ok "$1"
	else
		fail "$1" "$whole % whole, $through % through $2: $(head -n 20 "$dir/tree")"
	fi
}

daemon_start
cat >"$dir/deep.c" <<'END'
volatile unsigned long sink;
__attribute__((noinline)) int leaf(int n)
{
	char buf[256];

	for (int i = 0; i < 200000; i++) {
		sink += i ^ n;
		buf[i & 255] = (char)i;
	}
	return buf[n & 255];
}
__attribute__((noinline)) int descend(int n)
{
	int r = n ? descend(n - 1) : leaf(n);

	sink += r;
	return r + 1;
}
int main(void)
{
	for (int i = 0; i < 1500; i++)
		descend(i % 100);
	return 0;
}
END
check "a program without .eh_frame of its functions is built" gcc -O2 -g -fomit-frame-pointer \
	-fno-asynchronous-unwind-tables -fno-unwind-tables -o "$dir/deep" "$dir/deep.c"
unwinds "stacks of a C program are unwound by .debug_frame" descend "$dir/deep"

# As a package and its debug package: the program keeps its symbols, so that its functions have names.
split_debug() {
	mkdir "$dir/split" "$dir/split/.debug" && cp "$dir/deep" "$dir/split/deep" &&
		objcopy --only-keep-debug "$dir/deep" "$dir/split/.debug/deep.debug" &&
		objcopy --strip-debug "$dir/split/deep" &&
		objcopy --add-gnu-debuglink="$dir/split/.debug/deep.debug" "$dir/split/deep"
}

check "its debug information is moved to a separate file" split_debug
unwinds "stacks of a C program are unwound by .debug_frame of its debug file" descend "$dir/split/deep"

# A recursion of known depth, built without and with frame pointers.
cat >"$dir/recur.c" <<'END'
#include <stdlib.h>
#include <time.h>
volatile unsigned long spun;
__attribute__((noinline)) void spin(double s)
{
	struct timespec t;

	do {
		for (int i = 0; i < 300000; i++)
			spun += (unsigned int)i;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	} while (t.tv_sec + t.tv_nsec * 1e-9 < s);
}
__attribute__((noinline)) void recur(int depth)
{
	if (depth > 1)
		recur(depth - 1);
	else
		spin(1);
	spun++;
}
int main(int argc, char **argv)
{
	recur(argc > 1 ? atoi(argv[1]) : 1);
	return 0;
}
END

# Samples, whole stacks, and those that are the start, main(), DEPTH times recur() and FUNCTION, with what that calls.
paths() { # DEPTH FOLDED FUNCTION
	awk -v depth="$1" -v innermost="$3" '
		{ n = $NF; sub(/ [0-9]+$/, ""); all += n; frames = split($0, frame, ";"); at = 2
			if (frame[2] ~ /^\[cut/) next
			whole += n
			while (at <= frames && frame[at] != "main") at++
			for (calls = 0; frame[at + 1 + calls] == "recur"; calls++);
			if (calls == depth && frame[at + 1 + calls] == innermost) exact += n }
		END { print all + 0, whole + 0, exact + 0 }' "$2"
}

# Some 1000 samples: those of the first milliseconds are in the dynamic loader, or before the rules are made.
recurs() { # NAME MODE FUNCTION COMMAND..., in which DEPTH stands for each depth
	local command=("${@:4}") depth all whole exact

	for depth in 1 2 16 30 60 118; do
		"$ctl" record -q --call-graph="$2" -F 999 --user-only -f folded -o "$dir/folded" -- "${command[@]//DEPTH/$depth}" 2>"$dir/err" ||
			{ fail "$1" "$(cat "$dir/err")"; return; }
		read -r all whole exact <<<"$(paths $depth "$dir/folded" "$3")"
		if test "$all" -lt 300 || test $((whole * 100)) -lt $((all * 99)) || test $((exact * 100)) -lt $((all * 99)); then
			fail "$1" "$depth deep: $all stacks, $whole whole, $exact exact: $(head -n 5 "$dir/folded")"
			return
		fi
	done
	ok "$1"
}

for pointer in omit no-omit; do
	check "a recursion is built with -f$pointer-frame-pointer" gcc -O2 -fno-optimize-sibling-calls \
		"-f$pointer-frame-pointer" -o "$dir/recur-$pointer" "$dir/recur.c"
done
recurs "stacks of a recursion without frame pointers are whole and exact" cfi spin "$dir/recur-omit" DEPTH
recurs "stacks of a recursion with frame pointers are whole and exact" auto spin "$dir/recur-no-omit" DEPTH

# By frame pointers alone, of which libc has none: its functions neither start main() nor are called in the recursion.
check "a recursion that no library starts is built" gcc -O2 -fno-optimize-sibling-calls -fno-omit-frame-pointer \
	-mno-omit-leaf-frame-pointer -DOWN_START -nostartfiles -o "$dir/levels" tests/programs/levels.c
recurs "stacks of a recursion are whole and exact by frame pointers alone" fp leaf "$dir/levels" DEPTH DEPTH 1

if command -v go >/dev/null; then
	cat >"$dir/deep.go" <<'END'
package main

var sink int

//go:noinline
func leaf(n int) int {
	s := 0
	for i := 0; i < 200000; i++ {
		s += i ^ n
	}
	return s
}

//go:noinline
func descend(n int) int {
	if n == 0 {
		return leaf(n)
	}
	return descend(n-1) + 1
}

func main() {
	for i := 0; i < 5000; i++ {
		sink += descend(i % 50)
	}
}
END
	check "a Go program is built" env HOME="$dir" GO111MODULE=off go build -o "$dir/deep-go" "$dir/deep.go"
	unwinds "stacks of a Go program are unwound by .debug_frame" main.descend "$dir/deep-go"
else
	lacks "stacks of a Go program are unwound by .debug_frame" "go"
fi
daemon_stop
finish
