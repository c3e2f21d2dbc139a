#!/bin/bash
# grouped-stacks.sh - the stacks of the machine's profile are told apart by unit and container, in every format
# shellcheck disable=SC2016 # what is in quotes is for jq
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
first=$(printf 'a%.0s' {1..64}) second=$(printf 'b%.0s' {1..64})
tests/programs/stacks.py "$dir/one" units
# The same containers on a second host, with other numbers.
jq -c '.host = {name: "other", kernel: "", architecture: "", boot_id: ""} | .groups |= [.[0], .[3], .[1], .[2]]
	| .sums |= map(.[4] = [0, 2, 3, 1][.[4]]) | .stacks.groups |= map(.[1] = [0, 2, 3, 1][.[1]])' "$dir/one" >"$dir/two"
jq -c '.host = {name: "one", kernel: "", architecture: "", boot_id: ""}' "$dir/one" >"$dir/named"

# Stacks with what ran, and samples: of each format the same.
cat >"$dir/expected" <<END
2 main
5 web.service main
10 web.service main hot
30 $second main hot
4 web.service main hot do_it
60 $first main hot
END
sort -o "$dir/expected" "$dir/expected"

rows() { # FILE...
	"$ctl" report -f rows "$@" | jq -r 'select(.kind == "stack" and .object != "")
		| "\(.samples) \([.unit // "", .container // ""] + .stack | map(select(. != "")) | join(" "))"' | sort
}
otlp() { # FILE
	"$ctl" report -f otlp -o "$dir/otlp" "$1"
	/usr/bin/python3 tests/lib/otlp.py owned "$dir/otlp" | grep -v '\[' | sort
}
pprof() { # FILE
	"$ctl" report -f pprof -o "$dir/pprof" "$1"
	go tool pprof -raw "$dir/pprof" | awk '
		/^Samples:/ { part = 1 } /^Locations/ { part = 2 } /^Mappings/ { part = 3 }
		part == 2 && /0x/ { id = $1 + 0; name[id] = $4 ~ /^M=|^\[/ ? $4 : $3; if ($3 ~ /^M=/) name[id] = $4 }
		part == 1 && /^ *[0-9]+ +[0-9]+: / { n++; count[n] = $1; sub(/^[^:]*: */, ""); path[n] = $0 }
		part == 1 && match($0, /(unit|container):\[[^]]*/) { of = substr($0, RSTART, RLENGTH); sub(/.*\[/, "", of); whose[n] = of " " }
		END {
			for (i = 1; i <= n; i++) {
				text = ""; m = split(path[i], ids, " ")
				for (k = m; k > 0; k--) text = text (k < m ? " " : "") name[ids[k]]
				if (text !~ /^\[|^0x|^:/) print count[i] " " whose[i] text
			}
		}' | sort
}
prints "rows tell the same stack of two containers and a unit apart" "$(cat "$dir/expected")" rows "$dir/one"
reads protoc "OTLP has each stack in the resource of what ran" "$(cat "$dir/expected")" otlp "$dir/one"
reads go "pprof has each stack with its labels" "$(cat "$dir/expected")" pprof "$dir/one"
prints "folded stacks are those of all together" "100 main;hot" \
	sh -c "'$ctl' report -f folded '$dir/one' | sed -n 's/^[^;]*;\(main;hot\) \(.*\)/\2 \1/p'"

# What a file keeps.
"$ctl" report -o "$dir/kept" "$dir/one"
prints "a file keeps what ran each stack" "$(cat "$dir/expected")" rows "$dir/kept"
prints "the sum of two files has twice as many of each" "$(awk '{ $1 *= 2 } 1' "$dir/expected" | sort)" \
	rows "$dir/one" "$dir/kept"
prints "the stacks of two hosts are not mixed up" "$({ cat "$dir"/expected{,} | grep -v "^2 main"; echo 4 main; } | sort)" \
	rows "$dir/named" "$dir/two"
prints "--by host counts both" "$(jq .samples.binned "$dir/one") $(jq .samples.binned "$dir/one")" \
	sh -c "'$ctl' report --by host --all '$dir/named' '$dir/two' | awk '\$NF == \"one\" || \$NF == \"other\" { print \$(NF - 2) }' | paste -sd' '"

# Selection.
totals() { # ARGS...
	"$ctl" report -f json "$@" "$dir/one" | jq -c '[.samples.total, .stacks.samples, ([.functions[] | "\(.name) \(.samples)"] | sort | join(","))]'
}
prints "--container selects the stacks of one" '[60,60,"hot 60"]' totals --container "${first:0:12}"
prints "--unit selects those of a unit" '[19,19,"do_it 4,hot 10,main 5"]' totals --unit web.service
prints "and with --fold-kernel has those of the kernel at its callers" '[19,19,"hot 14,main 5"]' \
	totals --unit web.service --fold-kernel
prints "with --object it selects by both" '[15,15,"hot 10,main 5"]' totals --unit 'web*' --object spin
by_unit() { # ARGS...
	"$ctl" report --by unit "$@" "$dir/one" | awk '$2 == "%" && $NF != "unit" { print $NF, $(NF - 2) }' | sed 's/.*unit) /none /' | sort | paste -sd' '
}
prints "--by unit has those of a function" "none 90 web.service 10" sh -c \
	"'$ctl' report --by unit --function hot '$dir/one' | awk '/%.*unit\)\$/ { print \"none\", \$(NF - 3) } /web.service\$/ { print \$NF, \$(NF - 2) }' | paste -sd' '"
jq -c 'del(.stacks)' "$dir/one" >"$dir/flat"
prints "without stacks --container says how to have it" "profilctl: report: this profile counts containers by file only, not by function: 'profilctl machine on -g' counts functions by command and cgroup, 'profilctl record -a -o FILE' by process" \
	"$ctl" report --container "${first:0:12}" "$dir/flat"

for groups in '[[0, 4]]' '[[8, 1]]' '[[-1, 1]]' '[[0, -1]]' '[[0]]' '[0]'; do
	jq -c ".stacks.groups = $groups" "$dir/one" >"$dir/broken"
	check "a file with groups $groups of stacks is refused" sh -c "! '$ctl' report '$dir/broken' 2>/dev/null"
done
finish
