#!/bin/bash
# fleet-hour.sh - daemon with stacks, feeder, spool and push beside a mixed load, and a receiver that fails in every way
#
# PROFIL_TEST_FLEET_S: seconds, without the evaluation. The daemon and push are killed once each, at the start; the
# receiver is killed, stopped,
# cuts its answers, and answers 429 and 503 all the time; from the middle on it is away for longer than the spool keeps
# what it has. Each file that the spool has ever had is kept in a folder beside it, to compare with what was taken, and
# another spool counts the same samples in one interval.
# shellcheck disable=SC2016 # what is in quotes is for jq
# shellcheck source=tests/lib/spool.sh
. "$(dirname "$0")/../../lib/spool.sh"

needs node "an hour's push"
needs protoc "an hour's push"
seconds=${PROFIL_TEST_FLEET_S:-600}
max_age=$((seconds / 6 > 120 ? seconds / 6 : 120))
interval_s=15
round=150 # seconds of fail_in_turns()
receiver='' pusher='' feeder='' cuts=0 phases=0
pids=() # what ends with the test
# shellcheck disable=SC2154 # p is the trap's
trap 'for p in "${pids[@]}" "$receiver" "$pusher" "$feeder"; do test -z "$p" || kill -9 "$p" 2>/dev/null; done
	kill -9 "${keepers[@]}" 2>/dev/null; lib_end' EXIT
unset "${!OTEL_@}" http_proxy HTTP_PROXY all_proxy ALL_PROXY
mkdir "$dir/spool" "$dir/kept" "$dir/taken" "$dir/load"

pause() { # SECONDS
	read -r -t "$1" -u "$never" || return 0
}

# The requests of each receiver are in a folder of its own, which is named in the order of time.
receive() { # BEHAVIOUR...
	local in

	phases=$((phases + 1))
	in=$dir/taken/$(printf %04d "$phases")
	mkdir "$in"
	test ! -e "$dir/port" || cp "$dir/port" "$in/port"
	tests/lib/otlp_receiver.js "$in" "$@" &
	receiver=$!
	await "$receiver" test -e "$in/ready" || fail "the receiver listens" "$(cat "$dir/await")"
	cp "$in/port" "$dir/port"
}

receiver_kill() {
	kill -9 "$receiver"
	wait "$receiver" 2>/dev/null
	receiver=
	cuts=$((cuts + 1)) # it may have taken a request without an answer
}

push_start() {
	"$ctl" machine push --spool "$dir/spool" --state "$dir/state" "http://127.0.0.1:$(cat "$dir/port")" 2>>"$dir/push.log" &
	pusher=$!
}

cpu_us() { # PID
	awk '{ ns += $1 } END { printf "%d\n", ns / 1000 }' "/proc/$1"/task/*/schedstat 2>/dev/null
}

# Notes of each process, in DIR/NAME, the second, its resident kB and its microseconds of CPU; and keeps the spool's files.
watch() {
	local p

	while pause 5; do
		cp -ln "$dir"/spool/machine-*.json.gz "$dir/kept" 2>/dev/null
		for p in "profild $daemon" "feeder $feeder" "spool $spooler" "push $pusher"; do
			echo "$SECONDS $(awk '$1 == "VmRSS:" { print $2 }' "/proc/${p#* }/status" 2>/dev/null) $(cpu_us "${p#* }")" >>"$dir/${p% *}.seen"
		done
	done
}

# A round of everything that a receiver does.
fail_in_turns() {
	receive 200 wait 200 busy half 503 200 close 429 half 502 200
	cuts=$((cuts + 2))
	pause 60
	kill -STOP "$receiver"
	pause 25
	kill -CONT "$receiver"
	cuts=$((cuts + 3)) # each try ends after 10 s
	pause 20
	receiver_kill
	pause 30
	receive
	pause 15
	receiver_kill
}

ended_after() { # SECONDS
	test $((SECONDS - began)) -ge "$1"
}

map_bytes() {
	cat "/proc/$daemon"/fdinfo/* 2>/dev/null | awk '$1 == "memlock:" { n += $2 } END { print n + 0 }'
}

# A tenth and 4 MiB are what an allocator may keep of freed memory.
is_constant() { # NAME
	awk -v from="$steady" -v half="$half" '$1 < from || NF < 3 { next }
		$1 < half { if ($2 > first) first = $2 } $1 >= half { if ($2 > second) second = $2 }
		END { print first " KiB at most in the first half, then " second; exit !(first && second <= first * 1.1 + 4096) }' "$dir/$1.seen"
}

# Per cent of a CPU in the second half, in thousandths.
cpu_share() { # NAME
	awk -v half="$half" '$1 < half || NF < 3 { next } !from { from = $1; us = $3 } { to = $1; end = $3 }
		END { printf "%d\n", (end - us) / (to - from) / 10 }' "$dir/$1.seen"
}

sums_of() { # DIR
	zcat "$1"/machine-*.json.gz | jq -c -n '[inputs | select(.tick_ns < 1.1e7) | [.samples.total, .samples.binned,
		.samples.unmatched, .samples.lost, .stacks.samples // 0]] | transpose | map(add)'
}

whole_stacks() {
	zcat "$dir"/kept/machine-*.json.gz | jq -e -n '[inputs | .stacks.ends[]? | select(.end != "not_yet" and .end != "no_room")] |
		{whole: (map(select(.end == "whole").samples) | add), all: (map(.samples) | add)}, (map({key: .end, value: .samples}) |
		group_by(.key) | map({(.[0].key): (map(.value) | add)})), (map(select(.end == "whole").samples) | add) >= 0.99 * (map(.samples) | add)'
}

# The requests without those that came again, and the profiles that they should be, each by its time and total.
requests() { # FILE
	/usr/bin/python3 tests/lib/otlp.py requests "$dir"/taken/*/*.otlp >"$dir/requests" && uniq "$dir/requests" >"$1"
}

expected() {
	local f

	for f in "$dir"/kept/machine-*.json.gz; do zcat "$f" | jq -r 'select(.samples.total > 0) | "\(.started) \(.samples.total - .samples.lost - .samples.unmatched)"'; done
}

removed() {
	sed -nE 's/.* ([0-9]+) profiles were removed from .*/\1/p' "$dir/push.log" | awk '{ n += $1 } END { print n + 0 }'
}

is() { # WORDS WANTED
	test "$1" = "$2" || { echo "$1 instead of $2"; false; }
}

all_sent() {
	local last

	last=$(find "$dir/kept" -name 'machine-*.json.gz' -printf '%f\n' | sort | tail -n 1)
	grep -qF "$last" "$dir/state"
}

daemon_start
"$ctl" machine on -g -F 50 2>"$dir/on"
"$ctl" machine feed 2>>"$dir/feed.log" &
feeder=$!
keep "$dir/spool" -i "$interval_s" --max-age "$max_age"
spooler=$keeper
keep "$dir/whole" -i 3600
whole=$keeper
"$ctl" machine on -g -F 97 2>"$dir/on" # a new table, for both from its first sample on
nice -n 19 tests/lib/mixed_load.py 20 "$dir/load" 2>>"$dir/load.log" &
load=$!
pids+=("$load")
receive
push_start
began=$SECONDS
steady=$((began + seconds / 8 + 30)) half=$((began + seconds / 2))

pause $((seconds / 16))
kill -9 "$daemon"
wait "$daemon" 2>/dev/null
daemon_start
kill -9 "$pusher"
wait "$pusher" 2>/dev/null
cuts=$((cuts + 1))
push_start
receiver_kill
watch &
pids+=("$!")
maps=$(map_bytes)
until ended_after $((seconds / 2)); do fail_in_turns; done
prints "nothing is removed while the receiver fails for less than --max-age" 0 removed
printf '# away for %d s\n' $((max_age + 60))
pause $((max_age + 60))
until ended_after $((seconds - round)); do fail_in_turns; done
receive
check "the load has run to the end" alive "$load"
kill "$load"
await "$pusher" all_sent
check "the daemon's maps have the same size" is "$(map_bytes)" "$maps"
kill "$pusher"
wait "$pusher"
status=$?
pusher=
keepers_end "$spooler" "$whole"
cp -ln "$dir"/spool/machine-*.json.gz "$dir/kept"
kill "$feeder"
feeder=

check "every request obeys the rules of OTLP, Parca and Pyroscope" requests "$dir/once"
expected >"$dir/expected"
diff <(head -n "$(wc -l <"$dir/once")" <(cut -d ' ' -f 1,2 "$dir/once")) "$dir/expected" >"$dir/diff"
printf '# %s\n' "$(wc -l <"$dir/expected") profiles, $(wc -l <"$dir/requests") requests, $(removed) removed; push: $(tail -n 1 "$dir/push.log")"
check "no profile was taken that the spool did not have" is "$(grep -c '^<' "$dir/diff")" 0
unsent=$(sed -n '$p' "$dir/once" | awk -v f="$dir/expected" '{ while ((getline line <f) > 0) { split(line, w); n += w[1] > $1 } print n + 0 }')
check "what was not taken was removed by the spool, and counted by push" is $(($(grep -c '^>' "$dir/diff") - unsent)) "$(removed)"
check "the spool has removed profiles that were not sent" test "$(removed)" -gt 0
check "push returns 3 for that" test "$status" -eq 3
check "no profile was taken again after the next one" is "$(cut -d ' ' -f 3 "$dir/once" | sort | uniq -d)" ''
check "none was taken again but for a lost answer, of $cuts" test $(($(wc -l <"$dir/requests") - $(wc -l <"$dir/once"))) -le "$cuts"
check "short intervals have the samples of the long one, across a killed daemon: $(sums_of "$dir/kept")" is "$(sums_of "$dir/kept")" "$(sums_of "$dir/whole")"
check "99 % of the stacks are whole where unwind rules are fed" whole_stacks
printf '# %s\n' "$(whole_stacks | jq -c -s .)"
for name in profild feeder spool push; do
	check "$name's memory is constant" is_constant "$name"
	printf '# %s: %s; %d thousandths of a per cent of a CPU\n' "$name" "$(is_constant "$name")" "$(cpu_share "$name")"
done
check "profild takes at most a thousandth of a CPU" test "$(cpu_share profild)" -le 100
daemon_stop
finish
