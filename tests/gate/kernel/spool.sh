#!/bin/bash
# spool.sh - the spool of the machine profile is exact, and survives kills of itself and of the daemon
# shellcheck disable=SC2016 # what is in quotes is for jq
# shellcheck source=tests/lib/spool.sh
. "$(dirname "$0")/../../lib/spool.sh"

# A process that works in the kernel all the while: the machine's profile has samples whatever else runs.
dd if=/dev/zero of=/dev/null bs=64k &
busy=$!
keepers+=("$busy")
daemon_start
keep "$dir/short" -i 1 -F 1
short=$keeper
keep "$dir/whole" -i 3600 -f pprof -F 1
whole=$keeper
check "a spool turns the machine's profile on" jq -e -s '.[0] | .on and .tick_ns == 1e9' <("$ctl" machine status --json)
# A third one has no room for its profiles at first.
mkdir "$dir/full"
if mount -t tmpfs -o size=8m none "$dir/full" 2>"$dir/mount.err"; then
	head -c 9000000 /dev/zero >"$dir/full/ballast" 2>"$dir/ballast.err"
	keep "$dir/full" -i 1 -F 1
	full=$keeper
else
	skip "a spool keeps the profiles for which the disk has no room" "$(cat "$dir/mount.err")"
fi
# All follow the new table of 100 Hz without a loss, and read its last samples after "machine off".
"$ctl" machine on -F 100 2>"$dir/on"
check "the spool has a file for each interval" await $$ has_profiles "$dir/short" 3
await $$ has_used "$busy" $(($(cpu_ticks_of "$busy") + 20))
if test -n "${full:-}"; then
	check "a spool reports a full disk" await "$full" grep -q "no space left on device" "$dir/full.log"
	rm "$dir/full/ballast"
	check "a spool keeps the profiles for which the disk has no room" await "$full" grep -q "again, .*; 0 are missing" "$dir/full.log"
	check "a spool reports a full disk once" test "$(grep -c "no space left" "$dir/full.log")" = 1
fi
keepers_end "$short" "$whole" ${full:+"$full"}
sums "$dir/short" >"$dir/short.sums"
sums "$dir/whole" >"$dir/whole.sums"
check "the spool has samples: $(head -n 1 "$dir/whole.sums")" jq -e -s '.[0][0] > 0' "$dir/whole.sums"
check "short intervals add up to one long interval, place by place" cmp "$dir/short.sums" "$dir/whole.sums"
if test -n "${full:-}"; then
	sums "$dir/full" >"$dir/full.sums"
	check "no sample is lost by a full disk" cmp "$dir/full.sums" "$dir/whole.sums"
	umount "$dir/full"
fi
check "a long interval has a file for each rate" test "$(find "$dir/whole" -name '*.json.gz' | wc -l)" -le 2
check "machine spool -f pprof writes gzipped pprof files" sh -c "gzip -t '$dir'/whole/machine-*.pb.gz"
check "profiles of a spool have mode 640" test "$(stat -c %a "$dir"/whole/*.json.gz | sort -u)" = 640
check "a profile of a spool names host, kernel, architecture and boot" jq -e --arg h "$(hostname)" --arg k "$(uname -r)" --arg m "$(uname -m)" \
	--arg b "$(cat /proc/sys/kernel/random/boot_id)" \
	-s '.[0] | .host == {name: $h, kernel: $k, architecture: $m, boot_id: $b} and .started_boot_ns > 0' \
	<(zcat "$dir"/whole/*.json.gz | tail -n 1)
check "no interval overlaps the next one" do_not_overlap "$dir/short"
build_id=$(python3 -c 'notes = open("/sys/kernel/notes", "rb").read()
at = notes.find(b"\x14\0\0\0\3\0\0\0GNU\0")
print(notes[at + 12:at + 32].hex() if at >= 0 else "")')
check "the kernel has its build id" jq -e --arg id "$build_id" \
	'[.objects[] | select(.path == "[kernel]") | .build_id] == [$id]' <(zcat "$dir"/whole/*.json.gz | tail -n 1)
check "functions of the kernel have names" jq -e '[.functions[] | select(.object == "[kernel]" and .named)] | length > 0' \
	<(zcat "$dir"/whole/*.json.gz | tail -n 1)

check "the cost of a high rate of the whole machine is said" grep -q 'about 9 % of each busy CPU' <("$ctl" machine on -F 5000 2>&1)
"$ctl" machine off
"$ctl" machine on 2>"$dir/on"
check "that of the usual rate is not worth a line" test "$(wc -l <"$dir/on")" -eq 1
killed "$dir/killed" :
check "a second spool in the same directory is refused" sh -c "! '$ctl' machine spool '$dir/killed' 2>'$dir/second' && grep -q 'another process does' '$dir/second'"
kill "$keeper"
wait "$keeper"

# The daemon is killed: the next one takes over the table.
keep "$dir/restart" -i 1
kill -9 "$daemon"
wait "$daemon" 2>/dev/null
daemon_start
n=$(profiles_of "$dir/restart")
check "the spool continues with the next daemon" await $$ has_profiles "$dir/restart" $((n + 2))
kill "$keeper"
wait "$keeper"

# A program has run from a file system that is to be unmounted.
has_samples_of() { # SPOOL PATH
	zcat "$1"/*.json.gz 2>/dev/null | jq -e -n --arg path "$2" '[inputs | .functions[].object | select(. == $path)] | length > 0'
}
mkdir "$dir/mount"
if mount -t tmpfs none "$dir/mount" 2>"$dir/mount.err"; then
	"${CC:-cc}" -o "$dir/mount/spin" -x c - <<<'int main(void) { for (;;) ; }'
	keep "$dir/unmounted" -i 1 -F 100
	"$dir/mount/spin" &
	spin=$!
	await "$spin" has_samples_of "$dir/unmounted" "$dir/mount/spin"
	kill "$spin"
	wait "$spin" 2>/dev/null
	check "a file system can be unmounted after its programs have ended" await "$keeper" umount "$dir/mount"
	check "functions of an unmounted program have names" jq -e -n --arg path "$dir/mount/spin" \
		'[inputs | .functions[] | select(.object == $path) | .named] | any' <(zcat "$dir"/unmounted/*.json.gz)
	kill "$keeper"
	wait "$keeper"
else
	skip "a file system can be unmounted after its programs have ended" "$(cat "$dir/mount.err")"
fi
"$ctl" machine off
daemon_stop
finish
