#!/bin/bash
# formats.sh - one profile in every format, read back by the tools that the formats are of
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

ctl=$BUILD/profilctl
spin=$dir/spin
kept=$dir/kept
total=70345
${CC:-gcc} -O2 -g -o "$spin" tests/system/programs/spin.c -ldl -pthread || exit 1

# Where the code of $1 lies in $spin.
offset() { # FUNCTION
	local vaddr off

	read -r off vaddr < <(readelf -lW "$spin" | awk '$1 == "LOAD" && / R E / { print $2, $3 }')
	printf '%d\n' $((0x$(nm "$spin" | awk -v f="$1" '$3 == f { print $1 }') - vaddr + off))
}

# A profile whose counts are known: more in one place than gprof's counters hold, a function without
# symbols in an object without a file, ticks that fell nowhere, and names that need care.
keep() {
	local build_id hot cold

	build_id=$(readelf -nW "$spin" | sed -n 's/.*Build ID: //p')
	hot=$(offset hot) cold=$(offset cold)
	cat <<-END
		{"schema":"profil/1","command":"$spin split; \"quoted\"","pid":1,"started":1700000000,
		"command_status":0,"tick_ns":10000000,"duration_ns":703450000000,"cpu_ns":0,
		"samples":{"total":$total,"binned":70340,"unmatched":3,"lost":2},
		"functions":[
		{"name":"hot","object":"$spin","samples":70010,"offset":$hot,"size":16,"named":true},
		{"name":"cold;\"x\"","object":"$spin","samples":320,"offset":$cold,"size":16,"named":true},
		{"name":"","object":"[anon]","samples":10,"offset":139637976727552,"size":4096,"named":false}],
		"objects":[{"path":"[anon]","build_id":""},
		{"path":"$spin","build_id":"$build_id","vaddr":$((0x$(nm "$spin" | awk '$3 == "hot" { print $1 }') - hot)),"program":true}],
		"places":[[1,$hot,1,70000],[1,$((hot + 4)),1,10],[1,$cold,1,320],[0,139637976727552,1,10]]}
	END
}

keep >"$kept"
for format in text json pprof gmon folded callgrind speedscope gperftools html; do
	check "$format is written" "$ctl" report -f "$format" -o "$dir/$format" "$kept"
done

# ok when the command prints $2, and nothing but it.
prints() { # NAME WORDS COMMAND...
	local name=$1 words=$2 said

	shift 2
	said=$("$@" 2>&1)
	if test "$said" = "$words"; then ok "$name"; else fail "$name" "not $words: $said"; fi
}

# As prints, where the tool is installed.
reads() { # TOOL NAME WORDS COMMAND...
	local tool=$1

	shift
	if command -v "$tool" >/dev/null; then prints "$@"; else skip "$1" "no $tool"; fi
}

gmon_sum() { # FILE
	python3 -c '
import struct, sys
bytes = open(sys.argv[1], "rb").read()
at, total = 20, 0
while at < len(bytes):
    assert bytes[at] == 0
    n, = struct.unpack_from("<I", bytes, at + 17)
    total += sum(struct.unpack_from("<%dH" % n, bytes, at + 41))
    at += 41 + 2 * n
print(total)' "$1"
}

gprof_rows() {
	gprof -b -p "$spin" "$dir/gmon" | awk '$NF == "hot" || $NF == "cold" { print $1, $3, $NF }'
}

callgrind_rows() {
	callgrind_annotate --auto=no "$dir/callgrind" |
		sed -n -e 's/ (100.0%)  PROGRAM TOTALS//p' -e "s|^\([0-9,]*\) .*spin.c:hot \[$spin\]|hot \1|p"
}

google_rows() {
	google-pprof --text "$spin" "$dir/gperftools" 2>/dev/null |
		awk '/^Total/ { print $2 } $NF == "hot" || $NF == "cold" { print $1, $NF }'
}

go_rows() {
	go tool pprof -raw "$dir/pprof" 2>/dev/null | awk '/^PeriodType/ { print }
		/^Samples:/ { on = 1 } /^Locations/ { on = 0 } on && $1 + 0 { sum += $1; ns += $2 }
		END { printf "%d %.0f\n", sum, ns }'
}

go_top() {
	go tool pprof -top -nodefraction=0 -sample_index=samples "$dir/pprof" 2>/dev/null | awk '$6 { print $1, $6 }' |
		grep -e hot -e lost
}

# What is in column $2 of the line of $1.
text_column() { # NAME COLUMN ARGS...
	local name=$1 column=$2

	shift 2
	"$ctl" report "$@" "$kept" | awk -v name="$name" -v column="$column" '$0 ~ name { print $column }'
}

prints "text: all ticks" "$total samples: 70340 binned, 3 unmatched, 2 lost; 0 saturated" \
	grep samples: "$dir/text"
prints "text: the share" 99.52 text_column ' hot ' 1
prints "text: its interval" "99.5- 99.6" sh -c "awk '/ hot / { print \$3, \$4 }' $dir/text"
prints "text: the seconds" 700.100 text_column ' hot ' 6
prints "by line" "$(grep -n 'CHAIN(7' tests/system/programs/spin.c | sed 's/:.*//')" \
	sh -c "$ctl report --by line $kept | sed -n 's/.*spin.c:\([0-9]*\) hot .*/\1/p'"
prints "by instruction" 70000 text_column ' hot[+]0x0 ' 5 --by instruction
prints "by object" 70330 text_column "^ .*$spin" 4 --by object
prints "no pprof on a terminal" 1 sh -c "script -qec '$ctl report -f pprof $kept' /dev/null |
	grep -c 'pprof is nothing for a terminal'"
prints "no colour where there is no terminal" 0 grep -c $'\033' "$dir/text"
prints "colour on a terminal" 1 sh -c "TERM=xterm script -qec '$ctl report $kept' /dev/null |
	grep -c '\[1;31m.*hot'"
prints "NO_COLOR" 0 sh -c "NO_COLOR=1 TERM=xterm script -qec '$ctl report $kept' /dev/null |
	grep -c '\[1;31m'"
# shellcheck disable=SC2016 # awk's variables
prints "folded: all ticks" $total awk '{ sum += $NF } END { print sum }' "$dir/folded"
prints "folded: three frames a line" "spin;spin;hot 70010" grep hot "$dir/folded"
prints "folded: a semicolon is no frame" 'spin;spin;cold:"x" 320' grep cold "$dir/folded"
reads jq "json: all ticks" $total jq '.samples.unmatched + .samples.lost + ([.functions[].samples] | add)' "$dir/json"
valid() { # FILE...
	for f; do
		/usr/bin/python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))' "$dir/schema" "$f" || return
	done
}

"$ctl" schema >"$dir/schema"
if /usr/bin/python3 -c 'import jsonschema' 2>/dev/null; then
	check "json: as the schema has it" valid "$dir/json"
	echo '{"schema":"profil/1"}' >"$dir/less"
	prints "json: the schema is strict" 1 sh -c "/usr/bin/python3 -c 'import json, jsonschema, sys
try: jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))
except jsonschema.ValidationError: print(1)' $dir/schema $dir/less"
	daemon_start
	"$ctl" list --json >"$dir/list" && "$ctl" status --json >"$dir/status"
	check "json: list and status, too" valid "$dir/list" "$dir/status"
	daemon_stop
else
	skip "json: as the schema has it" "no python3-jsonschema"
fi
reads jq "speedscope: all ticks" $((total * 10000000)) jq '.profiles[0].weights | add' "$dir/speedscope"
reads jq "speedscope: a frame for each sample" true jq '(.profiles[0].samples | length) ==
	(.profiles[0].weights | length) and ([.profiles[0].samples[][0]] | max) < (.shared.frames | length)' "$dir/speedscope"
reads python3 "gmon: all ticks" $total gmon_sum "$dir/gmon"
reads gprof "gmon: gprof's shares and seconds" $'99.52 700.10 hot\n0.45 3.20 cold' gprof_rows
reads callgrind_annotate "callgrind: callgrind_annotate's totals" $'70,345\nhot 70,010' callgrind_rows
reads google-pprof "gperftools: google-pprof's totals" $'70345\n70010 hot\n320 cold' google_rows
# The sum of the column of samples, as a parser of HTML sees it, and all that is loaded from elsewhere.
page() {
	/usr/bin/python3 -c '
import html.parser, re, sys
class Page(html.parser.HTMLParser):
    cells, rows, outside, source = 0, [], [], ""
    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "tr": self.cells = 0
        if tag == "td":
            self.cells += 1
            if self.cells == 3: self.rows.append(int(attrs["data-v"]))
        if any(attrs.get(k, "").startswith(("http", "//")) for k in ("src", "href")): self.outside.append(tag)
    def handle_data(self, data): self.source += data
page = Page()
page.feed(open(sys.argv[1]).read())
print(sum(page.rows), len(page.rows), page.outside, "CHAIN(7 * n);" in page.source, bool(re.search(r"[0-9a-f]:\s+[a-z]", page.source)))' "$dir/html"
}

reads /usr/bin/python3 "html: all ticks, nothing from elsewhere, source and instructions" "$total 5 [] True True" page
reads go "pprof: go tool pprof's totals" $'PeriodType: cpu nanoseconds\n70345 703450000000' go_rows
reads go "pprof: go tool pprof's functions" $'70010 hot\n2 [lost]' go_top

# What the browser says of the page, and the first function once two clicks have put the fewest samples first.
browsed() {
	sed 's|</body>|<script>for (let i = 0; i < 2; i++) document.querySelectorAll("th button")[2].click()</script></body>|' \
		"$dir/html" >"$dir/clicked.html"
	timeout 60 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$dir/chromium" \
		--enable-logging=stderr --dump-dom "file://$dir/clicked.html" 2>"$dir/console" |
		tr -d '\n' | sed 's|.*<tbody>||; s|</td><td class="object">.*||; s|.*>||'
	echo
	grep CONSOLE "$dir/console"
}
reads chromium "html: clicks sort, and nothing is wrong" '(lost)' browsed
finish
