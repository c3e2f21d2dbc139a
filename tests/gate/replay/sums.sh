#!/bin/bash
# sums.sh - the profiles of many files and hosts are added up: samples, stacks, names and hosts
# shellcheck disable=SC2016 # what is in quotes is for jq
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl hosts=$dir/hosts
mkdir -p "$hosts"/web-{1,2,3}

# Writes a profile with stacks as HOST has it; a FILTER of jq changes it.
keep() { # FILE KIND HOST [FILTER]
	tests/programs/stacks.py "$dir/made" "$2"
	jq -c --arg h "$3" ".host = {name: \$h, kernel: \"6.1\", architecture: \"x86_64\", boot_id: \$h} | ${4:-.}" \
		"$dir/made" >"$1"
}

keep "$hosts/web-1/a.json" small web-1
keep "$hosts/web-1/b.json" recursion web-1
keep "$hosts/web-2/a.json" small web-2
keep "$hosts/web-3/a.json" groups web-3
gzip "$hosts/web-3/a.json"
echo "no profile" >"$hosts/web-3/readme.txt"
all=("$hosts/web-1/a.json" "$hosts/web-1/b.json" "$hosts/web-2/a.json" "$hosts/web-3/a.json.gz")

each() { # REPORT_ARGS...
	for file in "${all[@]}"; do
		"$ctl" report "$@" "$file"
	done
}

# Every stack of the sum has the samples that it has in all files together.
folded() {
	awk '{ n = $NF; sub(/ [0-9]+$/, ""); sum[$0] += n } END { for (s in sum) print s, sum[s] }' | sort
}

parts=$(each -f folded | folded)
prints "the stacks of files are added up" "$parts" eval '"$ctl" report -f folded "${all[@]}" | sort'
prints "a folder stands for the profiles below it" "$parts" eval '"$ctl" report -f folded "$hosts" | sort'
prints "a pattern stands for the files that it matches" "$parts" \
	eval '"$ctl" report -f folded "$hosts/*/*.json*" | sort'
prints "the order of the files makes no difference" "$parts" \
	eval '"$ctl" report -f folded "$hosts/web-3" "$hosts/web-2" "$hosts/web-1" | sort'

# The same for functions and outcomes.
totals='[.samples.total, .samples.binned, .samples.unmatched, .samples.lost, .duration_ns]'
functions='.functions | group_by([.object, .name, .offset]) | map([.[0].name, (map(.samples) | add)]) | sort'
summed=$(each -f json | jq -sc "map($totals) | transpose | map(add)")
prints "the samples of every outcome are added up" "$summed" eval '"$ctl" report -f json "$hosts" | jq -c "$totals"'
summed=$(each -f json | jq -sc "map(.functions[]) as \$all | {functions: \$all} | $functions")
prints "the samples of functions are added up" "$summed" eval '"$ctl" report -f json "$hosts" | jq -c "$functions"'

# The rows for databases: of the first kind all samples, with the stacks of folded; of the second the binned ones.
rows() { # FILTER
	"$ctl" report -f rows "$hosts" | jq -r "$1"
}
by_kind() {
	rows '"\(.kind) \(.samples)"' | awk '{ n[$1] += $2 } END { for (k in n) print k, n[k] }' | sort
}
prints "the rows of each kind add up" "$("$ctl" report -f json "$hosts" | jq -r '.samples | "owner \(.binned)\nstack \(.total)"')" \
	by_kind
names() {
	awk '{ n = $NF; sub(/ [0-9]+$/, ""); sub(/^[^;]*;/, ""); sum[$0] += n } END { for (s in sum) print s, sum[s] }' | sort
}
prints "the rows have the stacks of folded" "$("$ctl" report -f folded "$hosts" | names)" \
	eval 'rows "select(.kind == \"stack\") | \"x;\" + (.stack | map(gsub(\";\"; \":\") | gsub(\"[[:space:][:cntrl:]]\"; \" \")) | join(\";\")) + \" \(.samples)\"" | names'
prints "the rows of one host have its name" '["web-1"]' \
	eval '"$ctl" report -f rows "$hosts/web-1" | jq -sc "map(.host) | unique"'

# Hosts: in the rows, in the file that keeps the sum, and in its sum with others.
samples() { # OUTCOME FILE...
	for file in "${@:2}"; do "$ctl" report -f json "$file"; done | jq -s "map(.samples.$1) | add"
}
by_host() { # FILE...
	"$ctl" report --by host --all "$@" | awk '$2 == "%" && $NF ~ /^web-/ { print $NF, $(NF - 2) }' | sort
}
by_host "$hosts" >"$dir/by_host"
shows_hosts() {
	awk '{ print $1 }' "$dir/by_host" | diff - <(printf 'web-%d\n' 1 2 3)
}
check "--by host has a row for each host" shows_hosts
host_samples() { # FILE
	jq -c '[.groups as $g | .places[] | {h: ($g[.[4] // 0].host // ""), n: .[3]}] | group_by(.h) |
		map([.[0].h, (map(.n) | add)])' "$1"
}
"$ctl" report -o "$dir/sum" "$hosts"
prints "a file of the sum has the samples of each host" \
	"[[\"web-1\",$(samples binned "${all[@]:0:2}")],[\"web-2\",$(samples binned "${all[2]}")],[\"web-3\",$(samples binned "${all[3]}")]]" \
	host_samples "$dir/sum"
prints "the sum that was kept has the same rows by host" "$(cat "$dir/by_host")" by_host "$dir/sum"
prints "the sum that was kept has the same stacks" "$parts" eval '"$ctl" report -f folded "$dir/sum" | sort'
keep "$dir/web-4.json" small web-4
"$ctl" report -o "$dir/more" "$dir/sum" "$dir/web-4.json"
prints "a sum and another host are added up" '["web-1","web-2","web-3","web-4"]' \
	jq -c '[.groups[].host // empty] | unique' "$dir/more"
check "a sum of several hosts says so" grep -q '4 profiles of 3 hosts' <("$ctl" report "$hosts")
prints "one host's profile has one row by host" "web-1" \
	eval '"$ctl" report --by host "$hosts/web-1/a.json" | grep -o "web-.*"'
prints "commands of samples without one are not made up" "" \
	eval '"$ctl" report --by command "$hosts/web-1" "$hosts/web-2" 2>/dev/null | grep others'

# Code that a process has compiled is told apart by host: other hosts have the same process ids.
jit='.objects |= map(.path = "[anon]" | .pid = 7 | .build_id = "")'
keep "$dir/jit-1.json" small web-1 "$jit"
keep "$dir/jit-2.json" small web-2 "$jit"
keep "$dir/jit-3.json" small web-1 "$jit"
objects() { # FILE...
	"$ctl" report -o "$dir/jit" "$@" && jq '.objects | map(select(.pid == 7)) | length' "$dir/jit"
}
one=$(objects "$dir/jit-1.json" "$dir/jit-3.json")
prints "processes of two hosts do not share compiled code" $((2 * one)) objects "$dir/jit-1.json" "$dir/jit-2.json"

# One cannot be read, one is of something else: these are named, the others are read.
cp -r "$hosts" "$dir/some"
head -c 200 "${all[2]}" >"$dir/some/web-2/a.json"
keep "$dir/some/web-2/b.json" small web-2 '.tick_ns *= 2'
left_out() {
	"$ctl" report -f json "$dir/some" >"$dir/rest" 2>"$dir/said"
	test $? = 3
}
check "files that cannot be added leave the others" left_out
check "a damaged file is named" grep -q 'web-2/a.json: it is cut off' "$dir/said"
check "a file whose samples stand for another time is named" grep -q 'web-2/b.json: its samples stand for' "$dir/said"
prints "the others are added up" "$(samples binned "${all[@]:0:2}" "${all[3]}")" jq .samples.binned "$dir/rest"
mkdir "$dir/empty"
check "a folder without profiles is refused" grep -q "has no profiles" <("$ctl" report "$dir/empty" 2>&1)
check "a pattern without a match is refused" grep -q "cannot read" <("$ctl" report "$dir/*.none" 2>&1)

prints "diff compares two folders" "[$(samples total "${all[@]:0:2}"),$(samples total "${all[2]}")]" \
	eval '"$ctl" diff --json "$hosts/web-1" "$hosts/web-2" | jq -c .total'
prints "diff compares two patterns" "[$(samples total "${all[0]}" "${all[2]}"),$(samples total "${all[1]}")]" \
	eval '"$ctl" diff --json "$hosts/*/a.json" "$hosts/*/b.json" | jq -c .total'
finish
