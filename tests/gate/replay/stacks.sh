#!/bin/bash
# stacks.sh - one profile with stacks: the same numbers in every format, and the flame graph
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
for kind in small other large groups recursion namesakes; do
	check "the profile \"$kind\" is made" tests/programs/stacks.py "$dir/$kind" "$kind"
done

for format in json pprof folded callgrind speedscope; do
	check "report writes $format" "$ctl" report -f "$format" -o "$dir/small.$format" "$dir/small"
done

# Inclusive samples of five functions, of 7950: a recursion counts once, an inlined function by itself.
functions=$'cold\ndo_it\nhot\ninner\nmain'
inclusive=$'cold 320\ndo_it 40\nhot 7850\ninner 500\nmain 7910'

# The same from text: shares of all samples, by function and from the roots of the tree.
by_callees() {
	while read -r f; do
		"$ctl" report --callees "$f" -a "$dir/small" | awk -v f="$f" '$NF == f { print f, $1; exit }'
	done <<<"$functions"
}

in_tree() {
	"$ctl" report --tree -a "$dir/small" | awk '$2 == "%" && !seen[$NF]++ && $NF ~ /^(main|hot|inner|do_it)$/ { print $NF, $1 }' | sort
}

shares=$(awk '{ printf "%s %.2f\n", $1, 100 * $2 / 7950 }' <<<"$inclusive")
prints "--callees shows the inclusive shares" "$shares" by_callees
prints "--tree shows the inclusive shares of functions with one outermost call" "$(grep -v cold <<<"$shares")" in_tree

# The text of all its stacks is 1 GB.
little_memory() {
	python3 -c '
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
sys.exit(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 300 << 10)' "$@"
}

check "folded holds less than 300 MB of 120000 stacks" little_memory "$ctl" report -f folded "$dir/large"

# A C++ name in a tree, which has 80 columns at least.
long='std::map<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, int>::operator[](int)'
sed "s/\"do_it\"/\"$long\"/g" "$dir/small" >"$dir/long"
named() { # OPTION...
	"$ctl" report --tree -a "$@" "$dir/long" | grep -c "${long//[/\\[}\$"
}

prints "--tree shortens names" 0 named
prints "--tree --full-names does not" 1 named --full-names

# The interval of a share by Wilson's formula, here by an independent computation.
intervals() {
	python3 -c '
import statistics, sys
z = statistics.NormalDist().inv_cdf(0.975)
for line in sys.stdin:
    name, k = line.split()
    n, k = 7950, int(k)
    roots = [(2 * k + z * z + sign * z * (z * z + 4 * k * (1 - k / n)) ** 0.5) / (2 * (n + z * z)) for sign in (-1, 1)]
    print(name, "%5.1f-%5.1f" % tuple(100 * root for root in roots))'
}

intervals_in_tree() {
	"$ctl" report --tree -a "$dir/small" | awk '$2 == "%" && !seen[$NF]++ && $NF ~ /^(main|hot|inner|do_it)$/ {
		print $NF, substr($0, 10, 11) }' | sort
}

prints "--tree shows the confidence interval of each share" "$(grep -v cold <<<"$inclusive" | intervals)" intervals_in_tree

by_folded() {
	awk -v all="$functions" '{ n = $NF; sub(/ [0-9]+$/, ""); split("", seen); m = split($0, frame, ";")
		for (i = 2; i <= m; i++) if (!seen[frame[i]]++) sum[frame[i]] += n }
		END { k = split(all, want, "\n"); for (i = 1; i <= k; i++) print want[i], sum[want[i]] }' "$dir/small.folded"
}

by_go() {
	go tool pprof -top -cum -nodefraction=0 -sample_index=samples "$dir/small.pprof" 2>/dev/null |
		awk '$6 ~ /^(main|hot|inner|do_it|cold)$/ { print $6, $4 }' | sort
}

by_speedscope() {
	python3 -c '
import json, sys
p = json.load(open(sys.argv[1]))
frames, one = p["shared"]["frames"], p["profiles"][0]
for name in sys.argv[2].split():
    print(name, sum(w for s, w in zip(one["samples"], one["weights"]) if any(frames[f]["name"] == name for f in s)) // 1000000)' \
		"$dir/small.speedscope" "$functions"
}

by_callgrind() {
	callgrind_annotate --auto=no --inclusive=yes --threshold=100 "$dir/small.callgrind" |
		sed -n 's/^ *\([0-9,]*\) .*:\(main\|hot\|inner\|do_it\|cold\) .*/\2 \1/p' | tr -d , | sort
}

prints "folded has the inclusive samples" "$inclusive" by_folded
reads go "go tool pprof has the inclusive samples" "$inclusive" by_go
prints "speedscope has the inclusive samples" "$inclusive" by_speedscope
reads callgrind_annotate "callgrind_annotate has the inclusive samples" "$inclusive" by_callgrind
# Functions that call each other: a sample counts once for each of them, as callee and as caller.
recursion() {
	callgrind_annotate --auto=no --inclusive=yes --threshold=100 "$dir/recursion.callgrind" |
		sed -n 's/^ *\([0-9,]*\) .*:\([abc]\) .*/\2 \1/p' | sort
	awk '/^fn=/ { fn = substr($0, 4) } /^0x/ { sum[fn] += $3 } END { print sum["a"], sum["b"], sum["c"], sum["[threads]"] }' \
		"$dir/recursion.callgrind"
}

check "report writes callgrind of recursive functions" "$ctl" report -f callgrind -o "$dir/recursion.callgrind" "$dir/recursion"
reads callgrind_annotate "callgrind counts a sample of a recursion once" $'a 25\nb 22\nc 22\n25 22 22 30' recursion
check "report writes callgrind of two functions of one name" "$ctl" report -f callgrind -o "$dir/namesakes.callgrind" "$dir/namesakes"
reads callgrind_annotate "callgrind counts a sample in two functions of one name once" "a 10" \
	sh -c "callgrind_annotate --auto=no --inclusive=yes --threshold=100 '$dir/namesakes.callgrind' |
		sed -n 's/^ *\([0-9,]*\) .*:\(a\) .*/\2 \1/p'"
peek() {
	go tool pprof -peek '^cold$' -sample_index=samples "$dir/small.pprof" 2>/dev/null | awk '$3 == "|" { print $1, $4, $5, $6, $7 }'
}

reads go "go tool pprof -peek shows callers" $'300 hot   \n20 [cut: no unwind rules]' peek
raw() { # PATTERN
	go tool pprof -raw "$dir/small.pprof" 2>/dev/null | grep -cE "$1"
}

reads go "pprof has an inlined function in its caller's location" 1 raw ' inner :0:0 s=0.*$|M=[0-9]+ inner '
reads go "pprof labels samples in the kernel" 1 raw 'mode:.kernel.'

# Each format that has a place for it says how many stacks reach the start of their thread.
ends='99.71 % of the stacks reach the start of their thread'
said_in() { # FORMAT
	case $1 in
	text) "$ctl" report "$dir/small" ;;
	tree) "$ctl" report --tree "$dir/small" ;;
	pprof) zcat "$dir/small.pprof" ;;
	*) cat "$dir/small.$1" ;;
	esac | grep -ac "$ends"
}

for format in text tree pprof callgrind speedscope; do
	prints "$format says how many stacks are complete" 1 said_in $format
done

sed 's/"samples": *{/&"node_full":7,/' "$dir/small" >"$dir/full"
lacks='7 stacks lack their innermost frames'
check "a profile with a full tree of calls says so" sh -c "'$ctl' report --tree '$dir/full' | grep -q '$lacks'"
check "so does its JSON" sh -c "'$ctl' report -f json '$dir/full' | jq -e '.samples.node_full == 7'"

# Validates the file by the parts of speedscope's schema that apply to it.
speedscope_valid() {
	# shellcheck disable=SC2016 # the name of a key
	/usr/bin/python3 -c '
import json, jsonschema, sys
number, index = {"type": "number"}, {"type": "integer", "minimum": 0}
frame = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "file": {"type": "string"}, "line": number, "col": number}}
sampled = {"type": "object", "required": ["type", "name", "unit", "startValue", "endValue", "samples", "weights"], "properties": {
    "type": {"const": "sampled"}, "name": {"type": "string"}, "startValue": number, "endValue": number,
    "unit": {"enum": ["none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"]},
    "samples": {"type": "array", "items": {"type": "array", "items": index}}, "weights": {"type": "array", "items": number}}}
p = json.load(open(sys.argv[1]))
jsonschema.validate(p, {"type": "object", "required": ["$schema", "shared", "profiles"], "properties": {
    "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
    "shared": {"type": "object", "required": ["frames"], "properties": {"frames": {"type": "array", "items": frame}}},
    "profiles": {"type": "array", "items": sampled}}})
one = p["profiles"][0]
assert len(one["samples"]) == len(one["weights"]) and sum(one["weights"]) == one["endValue"]
assert max(f for s in one["samples"] for f in s) < len(p["shared"]["frames"])' "$dir/small.speedscope"
}

if /usr/bin/python3 -c 'import jsonschema' 2>/dev/null; then
	check "speedscope matches its schema" speedscope_valid
else
	lacks "speedscope matches its schema" "python3-jsonschema"
fi

# Filters select the same part of the stacks.
folded() { # ARGS...
	"$ctl" report -f folded "$@" "$dir/small"
}

prints "--tree shows a cut stack below the reason of the cut" $'0.25 0.00 [cut: no unwind rules]\n0.25 0.25 cold' \
	sh -c "'$ctl' report --tree -a '$dir/small' | awk '/cut:/ && \$2 == \"%\" { on = 2 } on-- > 0 { a = \$1; b = \$(NF - (/cut:/ ? 5 : 2))
		print a, b, (/cut:/ ? \"[cut: no unwind rules]\" : \$NF) }'"
prints "--fold-kernel counts kernel samples in the caller" $'spin;main;hot 7040\nspin;main;hot;hot 10' \
	sh -c "'$ctl' report -f folded --fold-kernel '$dir/small' | grep 'hot [0-9]*$' | awk '{ n = \$NF; \$NF = \"\"; sum[\$0] += n }
		END { for (s in sum) print s sum[s] }' | sort"
prints "--function keeps the stacks that end in the function" $'spin;[cut: no unwind rules];cold 20\nspin;main;hot;hot;cold 300' folded --function cold
prints "--fold-kernel --function keeps the kernel samples of the function" 7555 \
	sh -c "'$ctl' report -f folded --fold-kernel --function hot '$dir/small' | awk '{ n += \$NF } END { print n }'"
prints "--object keeps the stacks that end in the object" 'spin;main;hot;do_it 40' folded --object '[kernel]'
prints "--process refuses a profile with stacks" \
	"profilctl: report: stacks do not distinguish processes: leave out --process, or record only these processes: 'profilctl attach --comm one -g'" \
	sh -c "'$ctl' report --tree --process one '$dir/groups' 2>&1 >/dev/null"
prints "a format of stacks says that --process leaves them out" \
	"profilctl: report: the stacks of this profile do not tell which are of process one: samples are written without their callers" \
	sh -c "'$ctl' report -f folded --process one '$dir/groups' 2>&1 >/dev/null"
prints "--by object counts a sample in its innermost frame" $'99.31 7895\n0.50 40\n0.13 10' \
	sh -c "'$ctl' report --by object -a '$dir/small' | awk '\$2 == \"%\" && /(spin|.kernel.|.anon.)$/ { print \$1, \$5 }'"

# Lines have at most 80 columns; a name that is cut ends in an ellipsis.
narrow() {
	COLUMNS=80 "$ctl" report --tree --percent-limit 0.01 "$dir/large" | awk '
		/ % / && !/stack/ { n++; if (length($0) > 80) long++
			if (length($0) == 80 && !/[.][.][.]/) cut++ }
		END { print (n > 100 ? "many" : n), long + 0, cut + 0 }'
}

prints "--tree fits 80 columns, and cuts names only with an ellipsis" "many 0 0" narrow

# The same on a terminal, whose size the kernel knows. The pager stands aside.
on_terminal() { # COLUMNS
	# shellcheck disable=SC2016 # the variables are those of the shell in the terminal
	CTL=$ctl PROFILE=$dir/large WIDE=$1 script -qec 'stty cols "$WIDE" rows 24
		unset COLUMNS; PAGER=cat "$CTL" report --tree --percent-limit 0.01 "$PROFILE"' /dev/null </dev/null |
		sed 's/\x1b\[[0-9;]*m//g' | tr -d '\r' | awk -v most="$1" '
		/ % / && !/stack/ { n++; if (length($0) > most) long++; if (length($0) > widest) widest = length($0) }
		END { print (n > 100 ? "many" : n), long + 0, (widest > most - 20 ? "used" : widest) }'
}

prints "--tree fits a terminal of 80 columns" "many 0 used" on_terminal 80
prints "--tree fits a terminal of 120 columns" "many 0 used" on_terminal 120

has_by_night chromium "the flame graph works in a browser" && tells tests/lib/flame.py "$ctl" "$dir/small" "$dir/other" "$dir/large" "$dir"
finish
