#!/bin/bash
# smoke.sh - the whole road on this kernel: load, count, report, and leave nothing behind
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
# shellcheck source=tests/night/vm/counts.sh
. tests/night/vm/counts.sh

# The hottest function is the one in which the program spends all its time.
records() {
	"$BUILD/profilctl" record -F 200 -f json -o "$dir/report" -- "$BUILD/tests/programs/split" 3 >"$dir/out" 2>&1 || {
		echo "status $?: $(cat "$dir/out")"
		return 1
	}
	jq -e '.samples.total > 100 and .samples.total == .samples.binned + .samples.unmatched + .samples.lost
		and (.functions[0].object | endswith("/split")) and .functions[0].percent > 80' "$dir/report" >"$dir/out" || {
		jq -c 'del(.places)' "$dir/report" | head -c 2000
		return 1
	}
}

# In an emulated guest the verifier takes longer than profilctl waits: the daemon completes that later.
all_time() {
	local tries=10

	until "$BUILD/profilctl" record -q --wall -f folded -o "$dir/wall" -- true; do ((tries--)) || return; done
	"$BUILD/profilctl" record --wall --kernel-stacks -f folded -o "$dir/wall" -- sleep 0.2 || return
	cat "$dir/wall"
	grep -q '\[asleep\];.*nanosleep' "$dir/wall"
}

before=$(loaded)
daemon_start
ok "profild loads its programs"
check "bpftool sees them" test "$(loaded)" != "$before"
check "a linked program's ticks are its time, where it was spent" \
	runs_right "$BUILD/tests/programs/split.linked"
check "a preloaded program's ticks are its time, where it was spent" \
	runs_right env LD_PRELOAD="$PWD/$BUILD/libprofil.so.1" "$BUILD/tests/programs/split"
check "profilctl record finds the hot function" records
check "profilctl record divides all time of threads by states" all_time
daemon_stop
left=$(left_behind "$before")
check "SIGTERM leaves nothing in the kernel" says_nothing "$left"
PROFIL_SOCKET=$dir/no-daemon
check "profilctl record starts a daemon of its own" records
left=$(left_behind "$before")
check "and leaves nothing in the kernel" says_nothing "$left"
finish
