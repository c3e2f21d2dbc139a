#!/bin/bash
# spool.sh - the spool of the machine profile is exact, bounded, and survives kills and full disks
# shellcheck disable=SC2016 # what is in quotes is for jq
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")
keepers=() through=()
trap 'kill -9 "${keepers[@]}" 2>/dev/null; umount "$dir/small" 2>/dev/null; lib_end' EXIT

files() { # SPOOL AT_LEAST
	test "$(find "$1" -name '*Z-*.json.gz' 2>/dev/null | wc -l)" -ge "$2"
}

# Starts "machine spool" through the command $through, and waits until it is keeping profiles.
# Its pid is $keeper.
keep() { # SPOOL ARGS...
	: >"$1.log" # of an earlier one
	"${through[@]}" "$ctl" machine spool "$@" 2>>"$1.log" &
	keeper=$!
	keepers+=("$keeper")
	await $$ grep -q "keeping a profile" "$1.log"
}

load() { # SECONDS
	timeout "$1" sh -c 'while :; do gzip -c /proc/self/exe >/dev/null; done'
}

# Samples by outcome, and of each place by the object's path, at 100 Hz.
sums() { # SPOOL
	zcat "$1"/*.json.gz | jq -cS -n '[inputs | select(.tick_ns == 1e7)] as $all |
		($all | map(.samples | [.total, .binned, .unmatched, .lost]) | transpose | map(add)),
		($all | map(.objects as $o | .places[] | {at: [$o[.[0]].path, .[1], .[2]], n: .[3]}) |
			group_by(.at) | .[] | [.[0].at, (map(.n) | add)])'
}

daemon_start
keep "$dir/short" -i 1 -F 1
short=$keeper
keep "$dir/whole" -i 3600 -f pprof -F 1
whole=$keeper
check "a spool turns the machine's profile on" jq -e '.on and .tick_ns == 1e9' <("$ctl" machine status --json)
# Both spools follow the new table of 100 Hz without a loss, and read its last samples after "machine off".
"$ctl" machine on -F 100 2>"$dir/on"
load 4
check "the spool has a file for each interval" await $$ files "$dir/short" 4
"$ctl" machine off
for pid in "$short" "$whole"; do
	kill "$pid"
	wait "$pid" || fail "SIGTERM ends the spool with 0" "status $?: $(cat "$dir"/*.log)"
done
sums "$dir/short" >"$dir/short.sums"
sums "$dir/whole" >"$dir/whole.sums"
check "the spool has samples: $(head -n 1 "$dir/whole.sums")" jq -e -s '.[0][0] > 20' "$dir/whole.sums"
check "short intervals add up to one long interval, place by place" cmp "$dir/short.sums" "$dir/whole.sums"
check "a long interval has a file for each rate" test "$(find "$dir/whole" -name '*.json.gz' | wc -l)" -le 2
check "machine spool -f pprof writes gzipped pprof files" sh -c "gzip -t '$dir'/whole/machine-*.pb.gz"
check "profiles of a spool have mode 640" test "$(stat -c %a "$dir"/whole/*.json.gz | sort -u)" = 640
check "a profile of a spool names host, kernel, architecture and boot" jq -e --arg h "$(hostname)" --arg k "$(uname -r)" --arg m "$(uname -m)" \
	--arg b "$(cat /proc/sys/kernel/random/boot_id)" \
	'.host == {name: $h, kernel: $k, architecture: $m, boot_id: $b} and .started_boot_ns > 0' \
	<(zcat "$dir"/whole/*.json.gz | tail -n 1)
check "no interval overlaps the next one" jq -e -s 'sort_by(.started_boot_ns) | . as $p |
	all(range(1; length); $p[.].started_boot_ns >= $p[. - 1].started_boot_ns + $p[. - 1].duration_ns - 1e6)' \
	<(zcat "$dir"/short/*.json.gz)
build_id=$(python3 -c 'notes = open("/sys/kernel/notes", "rb").read()
at = notes.find(b"\x14\0\0\0\3\0\0\0GNU\0")
print(notes[at + 12:at + 32].hex() if at >= 0 else "")')
check "the kernel has its build id" jq -e --arg id "$build_id" \
	'[.objects[] | select(.path == "[kernel]") | .build_id] == [$id]' <(zcat "$dir"/whole/*.json.gz | tail -n 1)
check "functions of the kernel have names" jq -e '[.functions[] | select(.object == "[kernel]" and .named)] | length > 0' \
	<(zcat "$dir"/whole/*.json.gz | tail -n 1)

# The spool is killed five times while it writes.
"$ctl" machine on 2>"$dir/on"
for i in 1 2 3 4 5; do
	keep "$dir/killed" -i 1 -f pprof
	await $$ files "$dir/killed" "$i"
	load "0.$((i * 17 % 10))"
	kill -9 "$keeper"
	wait "$keeper" 2>/dev/null
done
keep "$dir/killed" -i 1
check "the next spool removes the temporary files of a killed one" test -z "$(find "$dir/killed" -name '*.gz.*')"
check "a second spool in the same directory is refused" sh -c "! '$ctl' machine spool '$dir/killed' 2>'$dir/second' && grep -q 'another process does' '$dir/second'"
check "every file is complete after five kills" sh -c "test -n \"\$(ls '$dir/killed')\" && gzip -t '$dir'/killed/*.gz &&
	'$ctl' report --spool '$dir/killed' --since -1h"
kill "$keeper"
wait "$keeper"

# The daemon is killed: the next one takes over the table, and no sample is lost or counted twice.
keep "$dir/restart" -i 1
load 1
kill -9 "$daemon"
wait "$daemon" 2>/dev/null
load 1
daemon_start
load 2
check "the spool continues with the next daemon" await $$ files "$dir/restart" 4
kill "$keeper"
wait "$keeper"
check "no profile has more samples than its CPUs have ticks" jq -e -s --argjson cpus "$(nproc)" \
	'all(.[]; .samples.total * .tick_ns <= 1.5 * $cpus * .duration_ns + 1e9)' <(zcat "$dir"/restart/*.json.gz)

# 5 s of intervals of 1 s; at most two are kept.
keep "$dir/few" -i 1 --max-age 2 -d 5
load 5
wait "$keeper"
check "machine spool -d returns 0" test $? -eq 0
check "--max-age removes old profiles" test "$(find "$dir/few" -name '*.json.gz' | wc -l)" -le 4
keep "$dir/small-size" -i 1 --max-size 24K -d 5
load 5
wait "$keeper"
check "--max-size removes the oldest profiles" test "$(du -B1 -s --apparent-size "$dir/small-size" | cut -f 1)" -le 65536

# One "machine spool" sees a clock that is set forward by an hour, then back by two, and a suspend of
# half an hour. A second one sees the true clocks, and counts the samples that there are.
shifter_start
through=("${shifted[@]}")
keep "$dir/set" -i 1 -F 1
through=()
set_keeper=$keeper
keep "$dir/unset" -i 3600 -F 1
unset_keeper=$keeper
"$ctl" machine on -F 100 2>"$dir/on"
# At a step one profile may be about to be written and one running: the third from then on began after it.
for shift in "0 0" "3600 0" "-3600 0" "-1800 1800"; do
	read -r -a seconds <<<"$shift"
	n=$(find "$dir/set" -name '*Z-*.json.gz' | wc -l)
	shift_clocks "${seconds[@]}"
	load 3
	check "profiles are kept with CLOCK_REALTIME and CLOCK_BOOTTIME ahead by ${shift/ / s and } s" await $$ files "$dir/set" $((n + 3))
done
"$ctl" machine off
for pid in "$set_keeper" "$unset_keeper"; do
	kill "$pid"
	wait "$pid" || fail "SIGTERM ends it with 0" "status $?: $(cat "$dir"/*.log)"
done
sums "$dir/set" >"$dir/set.sums"
sums "$dir/unset" >"$dir/unset.sums"
check "each sample is in exactly one profile across clock steps and a suspend" cmp "$dir/set.sums" "$dir/unset.sums"
check "profiles across clock steps have samples: $(head -n 1 "$dir/set.sums")" jq -e -s '.[0][0] > 20' "$dir/set.sums"
check "profiles start at the time that the stepped clock shows" jq -e -s --argjson now "$(date +%s)" \
	'map(.started - $now) | (max > 3000) and (min < -3000)' <(zcat "$dir"/set/*.json.gz)
check "across clock steps every duration is positive, and no interval overlaps the next one" jq -e -s 'sort_by(.started_boot_ns) | . as $p |
	all(.[]; .duration_ns > 0 and .duration_ns < 3e12) and
	all(range(1; length); $p[.].started_boot_ns >= $p[. - 1].started_boot_ns + $p[. - 1].duration_ns - 1e6)' \
	<(zcat "$dir"/set/*.json.gz)
check "exactly one interval includes the suspend" jq -e -s 'map(select(.duration_ns > 1.7e12)) | length == 1' <(zcat "$dir"/set/*.json.gz)

# A full disk.
mkdir "$dir/small"
if mount -t tmpfs -o size=64k none "$dir/small" 2>/dev/null; then
	mkdir "$dir/small/spool"
	"$ctl" machine spool "$dir/small/spool" -i 1 2>"$dir/small.log" &
	keeper=$!
	keepers+=("$keeper")
	await $$ files "$dir/small/spool" 1
	head -c 100000 /dev/zero >"$dir/small/ballast" 2>/dev/null
	load 3
	check "the spool reports a full disk" await $$ grep -q "no space left on device" "$dir/small.log"
	n=$(find "$dir/small/spool" -type f | wc -l)
	load 2
	check "the spool reports a full disk once" test "$(grep -c "no space left" "$dir/small.log")" = 1
	rm "$dir/small/ballast"
	load 2
	check "the spool continues when there is space again" await $$ files "$dir/small/spool" $((n + 1))
	check "the spool reports how many profiles are missing" await $$ grep -qE "again, from .*; [1-9][0-9]* are missing" "$dir/small.log"
	kill "$keeper"
	wait "$keeper"
	check "every file is complete after a full disk" sh -c "gzip -t '$dir'/small/spool/*.gz"
	umount "$dir/small"
else
	skip "the spool reports a full disk" "no tmpfs can be mounted"
fi
"$ctl" machine off
daemon_stop
finish
