#!/bin/bash
# new-code.sh - programs that compile new functions all the time: constant memory, and what had no room is told
#
# PROFIL_TEST_NEW_CODE_S: seconds of the recording, the second half of which is compared with the first.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")
seconds=${PROFIL_TEST_NEW_CODE_S:-600}

# Each function has a name of its own, and is called for a few milliseconds; the program is idle for most of the time.
cat >"$dir/new.py" <<'END'
import sys, time
end, n = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end:
    n += 1
    names = {"time": time}
    exec(f"def new_{n}(until):\n while time.thread_time() < until: pass\n", names)
    names[f"new_{n}"](time.thread_time() + 0.003)
    time.sleep(0.022)
END
cat >"$dir/new.js" <<'END'
const end = Date.now() + 1000 * process.argv[2];
let n = 0;
function once() {
	n++;
	const f = new Function("until", `return function new_${n}() { while (performance.now() < until); }`);
	f(performance.now() + 3)();
	if (Date.now() < end) setTimeout(once, 22);
}
once();
END

kib() { # PID
	awk '$1 == "VmRSS:" { print $2 }' "/proc/$1/status"
}

# Bytes of all maps of the daemon.
map_bytes() {
	cat "/proc/$daemon"/fdinfo/* 2>/dev/null | awk '$1 == "memlock:" { n += $2 } END { print n + 0 }'
}

# A tenth and 1 MiB are what an allocator may keep of freed memory.
is_constant() { # WHAT BEFORE AFTER
	echo "# $1: $2 KiB, then $3 KiB"
	test "$3" -le $(($2 + $2 / 10 + 1024))
}

daemon_start
"$ctl" record -q -g -F 999 -o "$dir/kept" -- sh -c "nice /usr/bin/python3 $dir/new.py $seconds & nice node $dir/new.js $seconds; wait" 2>"$dir/stderr" &
record=$!
sleep $((seconds / 2))
memory=$(kib "$daemon") client=$(kib "$record") maps=$(map_bytes)
sleep $((seconds / 2 - 5))
check "profild's memory is constant" is_constant profild "$memory" "$(kib "$daemon")"
check "profilctl's memory is constant" is_constant profilctl "$client" "$(kib "$record")"
check "the maps have the same size" test "$maps" -gt 0 -a "$maps" -eq "$(map_bytes)"
echo "# maps: $((maps >> 10)) KiB"
wait "$record"
check "the recording ends well" test $? -eq 0
cat "$dir/stderr"
"$ctl" report -f json -o "$dir/json" "$dir/kept"
jq -r '"# \(.samples.total) samples, \([.stacks.frames[] | select(.[0] // "" | test("new_"))] | length) functions, \(.samples.function_full) frames without room"' \
	"$dir/json"
check "samples add up" jq -e '.samples | .total == .binned + .unmatched + .lost' "$dir/json"
# shellcheck disable=SC2016 # jq's
check "functions of both languages are named" jq -e '.objects as $o |
	[.stacks.frames[] | select(.[0] // "" | test("new_[0-9]")) | $o[.[1]].path] | unique == ["node", "python"]' "$dir/json"
"$ctl" report "$dir/kept" >"$dir/report"
if test "$(jq '[.stacks.frames[] | select(.[0] // "" | test("new_"))] | length' "$dir/json")" -ge 8000; then
	check "frames of functions without room are counted" jq -e '.samples.function_full > 0' "$dir/json"
	check "the report tells of them" grep -i "the table of functions is full" "$dir/report"
	grep -i "the table of functions is full" "$dir/report" | sed 's/^/# /'
fi
daemon_stop
finish
