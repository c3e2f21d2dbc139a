#!/bin/bash
# programs.sh - reports of real programs: stripped ones, C++, Go with C, shells
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$PWD/$BUILD/profilctl
browser=/usr/lib/chromium/chromium
export HOME=$dir

# Records a command, without its output, as $dir/NAME.
kept() { # NAME COMMAND...
	local name=$1

	shift
	timeout 120 "$ctl" record -F 997 -o "$dir/$name" -- "$@" >"$dir/out" 2>&1
}

# Says whether the command takes less CPU time than MILLISECONDS, whatever else runs.
quick() { # MILLISECONDS COMMAND...
	local used limit=$1
	local TIMEFORMAT='%3U %3S'

	shift
	used=$({ time "$@" >/dev/null 2>"$dir/out"; } 2>&1) || { cat "$dir/out"; return 1; }
	awk -v limit="$limit" '{ ms = 1000 * ($1 + $2); print ms, "ms of CPU time"; exit !(ms < limit) }' <<<"$used"
}

# No line of a report is wider than COLUMNS, and the objects begin in the same column.
laid_out() { # COLUMNS FILE
	COLUMNS=$1 "$ctl" report "$2" | awk -v w="$1" '
		/ object$/ { at = length($0) - 5; next }
		!at || !/^ *[0-9.]+ %/ || /  \([^)]*\)$/ { next }
		length($0) > w { print "too wide: " $0; bad = 1 }
		substr($0, at - 2, 2) != "  " || substr($0, at, 1) == " " { print "out of line: " $0; bad = 1 }
		{ n++ }
		END { exit bad || !n }'
}

# Prints the share of the functions whose names match PATTERN, of all samples.
share() { # PATTERN FILE
	"$ctl" report -f json "$2" | jq --arg p "$1" '[.functions[] | select(.named and (.name | test($p))).percent] | add // 0 | floor'
}

# In a stripped program a few functions have unwind information. Each unnamed function is one of these,
# from its first byte to its last, or at most a page.
unnamed_are_bounded() { # FILE PROGRAM
	readelf --debug-dump=frames "$2" 2>/dev/null | grep -o 'pc=[0-9a-f.]*' >"$dir/fdes"
	"$ctl" report -f json "$1" | python3 -c '
import json, sys
p = json.load(sys.stdin)
fdes = {tuple(int(x, 16) for x in line[3:].split("..")) for line in open(sys.argv[1])}
vaddr = {o["path"]: o["vaddr"] for o in p["objects"]}
of_program = [f for f in p["functions"] if f["object"] == sys.argv[2] and not f["named"]]
assert len(of_program) > 10, len(of_program)
for f in of_program:
    start = f["offset"] + vaddr[f["object"]]
    assert f["size"] <= 4096 or (start, start + f["size"]) in fdes, f' "$dir/fdes" "$2"
}

if test -x "$browser" && command -v jq >/dev/null; then
	cat >"$dir/page.html" <<-END
		<script>
		let s = 0; const o = {}, t = performance.now();
		for (let i = 0; performance.now() - t < 2000; i++) {
			o["k" + i % 5000] = i; s += JSON.stringify(Object.keys(o).slice(0, 50)).length;
			const d = document.createElement("div"); d.innerHTML = "<p style=color:red>" + i; document.body.append(d);
			if (i % 200 == 0) document.body.innerHTML = "";
		}
		document.title = s;
		</script>
	END
	check "record profiles chromium" kept chromium chromium --headless --no-sandbox --disable-gpu --no-first-run \
		--disable-background-networking --disable-component-update --disable-sync \
		--user-data-dir="$dir/data" --dump-dom "file://$dir/page.html"
	check "unnamed functions of chromium end at their unwind information, or after a page" unnamed_are_bounded "$dir/chromium" "$browser"
	check "a report of chromium takes less than a second of CPU time" quick 1000 "$ctl" report "$dir/chromium"
	check "HTML of chromium takes less than 10 seconds of CPU time" quick 10000 "$ctl" report -f html -o "$dir/page" "$dir/chromium"
	check "HTML of chromium is smaller than 5 MB" test "$(stat -c %s "$dir/page")" -lt 5000000
	for columns in 80 132; do
		check "a report of chromium fits $columns columns" laid_out $columns "$dir/chromium"
	done
	hottest=$("$ctl" report -f json "$dir/chromium" | jq -r --arg o "$browser" \
		'[.functions[] | select(.object == $o and (.named | not))][0].name')
	check "annotate accepts a name from JSON" sh -c "'$ctl' annotate '$hottest' '$dir/chromium' >$dir/annotated"
	check "annotate accepts a name from the text" "$ctl" annotate "${hottest##*/}" "$dir/chromium"
	check "annotate prints less than 2000 lines of chromium" test "$(wc -l <"$dir/annotated")" -lt 2000
else
	lacks "record profiles chromium" "chromium or jq"
fi

if command -v go >/dev/null && command -v jq >/dev/null; then
	(cd tests/programs && go build -ldflags='-s -w' -o "$dir/cgo" cgo.go &&
		go build -buildmode=pie -ldflags='-s -w' -o "$dir/cgo-pie" cgo.go) || exit 1
	for program in cgo cgo-pie; do
		check "record profiles the stripped $program" kept go "$dir/$program" 2
		check "functions of the stripped $program have names" test "$(share '^main.spinInGo$|spin_in_c$' "$dir/go")" -gt 80
		check "Go functions of the stripped $program have names" test "$(share '^main.spinInGo$' "$dir/go")" -gt 10
	done
else
	lacks "record profiles Go with C" "go or jq"
fi

if command -v jq >/dev/null && ${CXX:-g++} -O2 -g -o "$dir/c++" tests/programs/words.cc; then
	yes 'The quick brown fox jumps over the lazy dog' | head -n 20000 >"$dir/text"
	check "record profiles a C++ program" kept words "$dir/c++" 2 "$dir/text"
	for columns in 80 100 132; do
		check "a report of a C++ program fits $columns columns" laid_out $columns "$dir/words"
	done
	check "report --full-names shows default template arguments" sh -c "'$ctl' report --full-names --all '$dir/words' | grep -q 'std::allocator<char>'"
	check "report leaves out default template arguments" sh -c "! '$ctl' report --all '$dir/words' | grep 'std::allocator<char>'"
	check "annotate accepts a shortened C++ name" "$ctl" annotate 'std::vector<...>::_M_realloc_insert' "$dir/words"
fi

if command -v node >/dev/null && command -v jq >/dev/null; then
	cat >"$dir/hot.js" <<-'END'
		function hotInNode(n) { let s = 0; for (let i = 0; i < n; i++) s += i % 7 ^ n; return s; }
		const used = process.cpuUsage().user; // on a busy machine its start takes most of two seconds
		let sum = 0;
		while (process.cpuUsage().user < used + 2e6) sum += hotInNode(100000);
		console.log(sum);
	END
	check "record profiles node" kept node env -C "$dir" node --perf-basic-prof "$dir/hot.js"
	check "compiled functions of node have names" test "$(share "hot.js" "$dir/node")" -gt 80
	check "annotate accepts a part of a compiled function's name" "$ctl" annotate hotInNode "$dir/node"
	rm -f /tmp/perf-"$("$ctl" report -f json "$dir/node" | jq .pid)".map
else
	lacks "record profiles node" "node or jq"
fi

# shellcheck disable=SC2016 # the other shell's
check "record profiles a shell" kept shell bash -c 'for ((i = 0; i < 300000; i++)); do x=${i/7/8}; done'
check "annotate accepts a part of a shell's function name" "$ctl" annotate execute_command "$dir/shell"
finish
