#!/bin/bash
# spool.sh - the spool of the machine profile is bounded, and survives kills at any moment and clock steps
# shellcheck disable=SC2016 # what is in quotes is for jq
# shellcheck source=tests/lib/spool.sh
. "$(dirname "$0")/../../lib/spool.sh"

trap 'kill -9 "${keepers[@]}" 2>/dev/null; umount "$dir/small" 2>/dev/null; lib_end' EXIT

load() { # SECONDS
	timeout "$1" sh -c 'while :; do gzip -c /proc/self/exe >/dev/null; done'
}

# Uses a part of a second that is another one for each N.
load_a_part() { # N
	load "0.$(($1 * 17 % 10))"
}

daemon_start
"$ctl" machine on 2>"$dir/on"
killed "$dir/killed" load_a_part
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
await $$ has_profiles "$dir/restart" 4
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
	n=$(profiles_of "$dir/set")
	shift_clocks "${seconds[@]}"
	load 3
	check "profiles are kept with CLOCK_REALTIME and CLOCK_BOOTTIME ahead by ${shift/ / s and } s" await $$ has_profiles "$dir/set" $((n + 3))
done
keepers_end "$set_keeper" "$unset_keeper"
sums "$dir/set" >"$dir/set.sums"
sums "$dir/unset" >"$dir/unset.sums"
check "each sample is in exactly one profile across clock steps and a suspend" cmp "$dir/set.sums" "$dir/unset.sums"
check "profiles across clock steps have samples: $(head -n 1 "$dir/set.sums")" jq -e -s '.[0][0] > 20' "$dir/set.sums"
check "profiles start at the time that the stepped clock shows" jq -e -s --argjson now "$(date +%s)" \
	'map(.started - $now) | (max > 3000) and (min < -3000)' <(zcat "$dir"/set/*.json.gz)
check "across clock steps every duration is positive" jq -e -s 'all(.[]; .duration_ns > 0 and .duration_ns < 3e12)' \
	<(zcat "$dir"/set/*.json.gz)
check "across clock steps no interval overlaps the next one" do_not_overlap "$dir/set"
check "exactly one interval includes the suspend" jq -e -s 'map(select(.duration_ns > 1.7e12)) | length == 1' <(zcat "$dir"/set/*.json.gz)

"$ctl" machine off
daemon_stop
finish
