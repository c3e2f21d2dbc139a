#!/bin/bash
# spool.sh - reports of a spool: profiles are found by time, added up and compared
# shellcheck disable=SC2016 # what is in quotes is for jq
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl spool=$dir/spool
export TZ=UTC
mkdir "$spool"

# Adds a profile of SAMPLES in hot and as many in cold to the spool, of one minute from TIME on.
keep() { # NAME TIME SAMPLES
	sample_profile "$dir/one"
	jq -c --argjson t "$(date -d "$2" +%s)" --argjson n "$3" '.started = $t | .duration_ns = 60e9
		| .samples = {total: (2 * $n + 3), binned: (2 * $n), unmatched: 2, lost: 1}
		| .functions[].samples = $n | .places[][3] = $n' "$dir/one" | gzip >"$spool/$1.json.gz"
}

keep machine-20261121T235900Z-60s "2026-11-21 23:59" 1
keep machine-20261122T000000Z-60s "2026-11-22 00:00" 10
keep machine-20261122T000100Z-60s "2026-11-22 00:01" 100
keep machine-20261122T000100Z-60s.2 "2026-11-22 00:01" 1000 # the clock was set back
echo cut >"$spool/machine-20261122T000000Z-60s.json.gz.4711.0"
cp "$dir/one" "$spool/notes.json"

total() { # REPORT_ARGS...
	"$ctl" report --spool "$spool" -f json "$@" | jq .samples.total
}

is() { # NAME TOTAL REPORT_ARGS...
	local name=$1 want=$2 got

	shift 2
	got=$(total "$@" 2>&1)
	if test "$got" = "$want"; then ok "$name"; else fail "$name" "report $* has $got samples, not $want"; fi
}

is "a day has all its profiles" 2229 --since 2026-11-22 --until "2026-11-23"
is "a span may cross midnight" 28 --since "2026-11-21 23:59" --until "2026-11-22 00:01"
is "a span ends before the profile of its end" 5 --since "2026-11-21 23:00" --until "2026-11-22 00:00:30"
is "the next span begins with that profile" 2229 --since "2026-11-22 00:00:30" --until "2026-11-22 01:00"
is "a span within an interval has the profile of that interval" 23 --since "2026-11-22 00:00:05" --until "2026-11-22 00:00:10"
is "--since alone has the profiles from then on" 2206 --since @1795305660
is "--until alone has the profiles before then" 5 --until "2026-11-22 00:00"
is "a span may be an operand" 23 "2026-11-22 00:00..2026-11-22 00:01"
"$ctl" report --spool "$spool" --since 2026-11-22 -f json >"$dir/sum"
check "samples of every outcome are added up" jq -e '.samples.unmatched == 6 and .samples.lost == 3 and
	.duration_ns == 180e9 and (.functions | map(.samples) == [1110, 1110])' "$dir/sum"
check "the report names the time of its profiles" grep -q "(3 profiles), 2026-11-22 00:00:00 to 2026-11-22 00:02:00" \
	<("$ctl" report --spool "$spool" --since 2026-11-22)
check "diff compares two spans" jq -e '.total == [5, 23]' \
	<("$ctl" diff --json --spool "$spool" "2026-11-21..2026-11-22" "2026-11-22..2026-11-22 00:01")
check "report reads one file of a spool" test "$("$ctl" report -f json "$spool/machine-20261122T000000Z-60s.json.gz" |
	jq .samples.total)" = 23

refuses() { # NAME STATUS WORDS COMMAND...
	local name=$1 status=$2 words=$3 got

	shift 3
	"$@" >/dev/null 2>"$dir/stderr"
	got=$?
	if test "$got" -eq "$status" && grep -qF -- "$words" "$dir/stderr"; then
		ok "$name"
	else
		fail "$name" "$* returned $got, not $status, or said no \"$words\": $(cat "$dir/stderr")"
	fi
}

refuses "a span without profiles is refused with the times that have some" 1 "what it has is from 2026-11-21 23:59:00 to 2026-11-22 00:02:00" \
	"$ctl" report --spool "$spool" --since 2026-11-20 --until 2026-11-21
refuses "a spool that does not exist is refused" 1 "there is no spool" "$ctl" report --spool "$dir/nowhere" --since 03:00
refuses "an invalid time is refused" 2 "teatime is not a time" "$ctl" report --spool "$spool" --since teatime
refuses "a span that ends before it begins is refused" 2 "--until is not after --since" \
	"$ctl" report --spool "$spool" --since -1h --until -2h
refuses "a file together with a time is refused" 2 "needs files or a time" "$ctl" report --since 03:00 "$dir/one"
refuses "an invalid size is refused" 2 "--max-size 1X" "$ctl" machine spool --max-size 1X "$spool"
refuses "an invalid age is refused" 2 "--max-age never" "$ctl" machine spool --max-age never "$spool"
head -c 100 "$spool/machine-20261122T000000Z-60s.json.gz" >"$spool/machine-20261122T000000Z-60s.3.json.gz"
refuses "a damaged file is named and the others are read" 3 "machine-20261122T000000Z-60s.3.json.gz" \
	"$ctl" report --spool "$spool" --since 2026-11-22
before="2026-11-21..2026-11-22" damaged="2026-11-22..2026-11-22 00:01"
refuses "diff names a damaged file of its first time" 3 "machine-20261122T000000Z-60s.3.json.gz" \
	"$ctl" diff --spool "$spool" "$damaged" "$before"
refuses "diff names a damaged file of its second time" 3 "machine-20261122T000000Z-60s.3.json.gz" \
	"$ctl" diff --spool "$spool" "$before" "$damaged"
for times in "$damaged|$before|[23,5]" "$before|$damaged|[5,23]"; do
	IFS='|' read -r a b totals <<<"$times"
	check "diff compares the files that can be read: $totals" jq -e ".total == $totals" \
		<("$ctl" diff --json --spool "$spool" "$a" "$b" 2>/dev/null)
done
jq -c ".tick_ns = 5" "$dir/one" | gzip >"$spool/machine-20261122T000300Z-60s.json.gz"
rm "$spool/machine-20261122T000000Z-60s.3.json.gz"
refuses "samples of two rates are not added up" 3 "stand for" "$ctl" report --spool "$spool" --since 2026-11-22
finish
