#!/bin/bash
# image-lookup.sh - if the walk of the VMA tree fails its self-test, a fallback is used and named
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl

# Checks the method that status, doctor and the daemon's log name.
named() { # METHOD FINDING LOG
	"$ctl" status --json | jq -e --arg method "$1" '.image_lookup == $method' || return
	"$ctl" doctor >"$dir/doctor"
	grep -E "$2" "$dir/doctor" || { cat "$dir/doctor"; return 1; }
	if test "$3"; then
		grep -E "image lookup: $3" "$dir/log"
	else
		! grep 'image lookup' "$dir/log"
	fi
}

record() { # JQ RECORD_ARGS...
	"$ctl" record -F 999 -f json -o "$dir/json" "${@:2}" >"$dir/out" 2>&1 || {
		cat "$dir/out"
		return 1
	}
	jq -e ".samples.total > 100 and .samples.total == .samples.binned + .samples.unmatched + .samples.lost and ($1)" \
		"$dir/json" || { jq -c 'del(.places)' "$dir/json" | head -c 2000; return 1; }
}

# Runs another suite, whose daemons inherit PROFIL_TEST_IMAGE_LOOKUP.
passes() { # BINARY SUITE
	if ! "$BUILD/tests/$1" -j1 --timeout 300 --filter "$2/*" >"$dir/out" 2>&1 ||
		! grep -q 'Tested: .*[1-9]' "$dir/out"; then
		cat "$dir/out"
		return 1
	fi
}

split=("$BUILD/tests/programs/split" 1)
clock=(python3 -c 'while __import__("time").process_time() < 1: pass') # half of it in the kernel
unset PROFIL_TEST_IMAGE_LOOKUP
daemon_start
check "the walk passes its self-test" named walk '^ok +images .* walk of the VMA tree' ''
daemon_stop

export PROFIL_TEST_IMAGE_LOOKUP=find-vma
daemon_start
check "if it fails, bpf_find_vma() is used and named" \
	named find-vma '^note +images .*bpf_find_vma' '.*using bpf_find_vma'
check "find-vma: functions have names" record '.functions[0].object | endswith("/split")' -- "${split[@]}"
"$ctl" record -q -g -o "$dir/known" -- "${clock[@]}" # makes the unwind rules of what the interpreter loads
check "find-vma: stacks of an interpreter reach the start of their thread" record \
	'(.stacks.ends[] | select(.end == "whole").samples) > .samples.total * 3 / 4' -g -- "${clock[@]}"
daemon_stop
check "find-vma: kernel_places passes" passes gate-tests kernel_places
check "find-vma: kernel_places_share passes" passes night-tests kernel_places_share
check "find-vma: kernel_stacks_share passes" passes night-tests kernel_stacks_share

export PROFIL_TEST_IMAGE_LOOKUP=process
daemon_start
check "if that fails too, samples are counted by process, and that is named" \
	named process '^note +images .*by process' '.*by process, without an image'
check "process: user samples are in [anon]" record '.samples.unmatched == 0 and .functions[0].object == "[anon]"' -- "${split[@]}"
check "process: kernel functions have names" record '[.functions[] | select(.object == "[kernel]" and .named)] != []' -- "${clock[@]}"
check "process: record -g works" record '.functions[0].object == "[anon]"' -g -- "${split[@]}"
daemon_stop
finish
