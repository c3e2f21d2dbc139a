#!/bin/bash
# call_paths.sh - stacks of tests/programs/call_paths.c, which are facts
#
# To be sourced after lib.sh. $ctl is profilctl, $paths the program.
# shellcheck disable=SC2154 # dir, ctl and paths are the script's

# The share in percent of the samples of COMMAND's stacks that start at the start of their thread and go on
# as REGEX says from main() on, or from FUNCTION on, after the number of samples.
share() { # COMMAND REGEX [FUNCTION]
	awk -v command="$1" -v path="^($2)$" -v from="^[^;]*;_start;([^;]*;)*${3:-main}" '
		{ n = $NF; sub(/ [0-9]+$/, "") }
		$0 !~ "^" command ";" { next }
		{ all += n }
		/;\[cut/ || !sub(from ";", "") { next }
		$0 ~ path { good += n }
		END { print all + 0, all ? 100 * good / all : 0 }' "$dir/folded"
}

# ok when there are at least SAMPLES of COMMAND, and at least 95 %, or $least, of their stacks are as REGEX says. On a
# busy machine many samples are in the kernel, which --user-only leaves out: of 600 as few as 370 remained. What is not as
# REGEX says, are the samples in the dynamic loader and before the rules of a library are made: some 10 ms of 600.
# The paths are facts: only the share of these is subject to chance.
expect() { # NAME COMMAND SAMPLES REGEX [FUNCTION]
	local n percent

	read -r n percent <<<"$(share "$2" "${@:4}")"
	if test "$n" -ge "$3" && test "${percent%.*}" -ge "${least:-95}"; then
		ok "$1"
	else
		fail "$1" "$percent % of $n: $(awk '{ print $NF, $0 }' "$dir/folded" | sort -rn | head -n 8 | cut -c 1-500)"
	fi
}

record() { # OPTION... -- COMMAND...
	"$ctl" record -q -g -F 999 -f folded -o "$dir/folded" "$@" 2>"$dir/err" || fail "record -g $*" "$(cat "$dir/err")"
}

kernel='(;[^;]*)*' # functions of the kernel, or that spin() calls
returns='(__restore_rt|__kernel_rt_sigreturn)' # where a handler returns to: in libc, or in the vdso of arm64
handled="$returns;on_inner;spin$kernel"
raised='raises;([^;]*;)?raise[^;]*;([^;]*;)*'
raises="act;$raised$handled" nests="act;${raised}$returns;on_outer;([^;]*;)*$handled"

# $paths raises a signal below known callers, on the thread's stack, one below and one above it.
signals() {
	local stack

	for stack in "" below above; do
		record --user-only -- "$paths" raise 0.6 $stack
		expect "stacks reach main() through a handler${stack:+ on a stack $stack}" paths 150 "$raises"
		record --user-only -- "$paths" nested 0.6 $stack
		expect "stacks reach main() through nested handlers${stack:+ on a stack $stack}" paths 150 \
			"$nests"
		record --user-only -- "$paths" timer 0.6 $stack
		expect "stacks reach main() from a timer's handler${stack:+ on a stack $stack}" paths 150 \
			"act;interrupted[^;]*(;$handled)?"
		record --user-only -- "$paths" trap 0.6 $stack
		expect "a function is found that its first instruction has left by a trap${stack:+, on a stack $stack}" \
			paths 150 "act;traps;trapping;$returns;on_trap;spin$kernel"
	done
}
