#!/bin/bash
# formats.sh - one profile in every format, read back by the tools for these formats
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
spin=$dir/spin
kept=$dir/kept
total=70345
${CC:-gcc} -O2 -g -o "$spin" tests/programs/spin.c -ldl -pthread || exit 1

# Prints the file offset of FUNCTION in $spin.
offset() { # FUNCTION
	local vaddr off

	read -r off vaddr < <(readelf -lW "$spin" | awk '$1 == "LOAD" && / R E / { print $2, $3 }')
	printf '%d\n' $((0x$(nm "$spin" | awk -v f="$1" '$3 == f { print $1 }') - vaddr + off))
}

# Prints a profile of known counts: one place has more samples than a gprof counter of 16 bits holds,
# one function is in an object without a file, some samples are unmatched or lost, and names have
# characters that formats must escape.
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
for format in text json pprof otlp gmon folded callgrind speedscope perf html markdown rows; do
	check "report writes $format" "$ctl" report -f "$format" -o "$dir/$format" "$kept"
done

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

# The event count that perf shows, and the sum of the periods, by function.
perf_rows() { # FILE
	perf report -i "$1" --stdio --no-children -g none -F period,sym,dso 2>/dev/null | awk '
		/Event count/ { print $NF }
		$3 == "hot" || $3 == "cold" { print $1, $3 }
		/lost/ || /unmatched/ { print $1, $NF }'
}

perf_sum() { # FILE
	perf script -i "$1" -F period 2>/dev/null | awk '{ sum += $1 } END { printf "%.0f\n", sum }'
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

# Prints column COLUMN of the line of NAME.
text_column() { # NAME COLUMN ARGS...
	local name=$1 column=$2

	shift 2
	"$ctl" report "$@" "$kept" | awk -v name="$name" -v column="$column" '$0 ~ name { print $column }'
}

prints "text has every sample" "$total samples: 70340 binned, 3 unmatched, 2 lost" \
	grep samples: "$dir/text"
prints "text has each function's share" 99.52 text_column ' hot ' 1
prints "text has the interval of the share" "99.5- 99.6" sh -c "awk '/ hot / { print \$3, \$4 }' $dir/text"
prints "text has each function's seconds" 700.100 text_column ' hot ' 6
prints "--by line names the line" "$(grep -n 'CHAIN(7' tests/programs/spin.c | sed 's/:.*//')" \
	sh -c "$ctl report --by line $kept | sed -n 's/.*spin.c:\([0-9]*\) hot .*/\1/p'"
prints "--by instruction counts by instruction" 70000 text_column ' hot[+]0x0 ' 5 --by instruction
prints "--by object counts by object" 70330 text_column "^ .*$spin" 4 --by object
prints "pprof is not written to a terminal" 1 sh -c "script -qec '$ctl report -f pprof $kept' /dev/null |
	grep -c 'pprof is binary'"
prints "text has no colour without a terminal" 0 grep -c $'\033' "$dir/text"
prints "text has colour on a terminal" 1 sh -c "TERM=xterm script -qec '$ctl report $kept' /dev/null |
	grep -c '\[1;31m.*hot'"
prints "NO_COLOR turns colour off" 0 sh -c "NO_COLOR=1 TERM=xterm script -qec '$ctl report $kept' /dev/null |
	grep -c '\[1;31m'"
# shellcheck disable=SC2016 # awk's variables
prints "folded has every sample" $total awk '{ sum += $NF } END { print sum }' "$dir/folded"
prints "folded has program, object and function on a line" "spin;spin;hot 70010" grep hot "$dir/folded"
prints "folded escapes semicolons in names" 'spin;spin;cold:"x" 320' grep cold "$dir/folded"
reads jq "JSON has every sample" $total jq '.samples.unmatched + .samples.lost + ([.functions[].samples] | add)' "$dir/json"
valid() { # FILE...
	for f; do
		/usr/bin/python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))' "$dir/schema" "$f" || return
	done
}

"$ctl" schema >"$dir/schema"
if /usr/bin/python3 -c 'import jsonschema' 2>/dev/null; then
	check "JSON matches its schema" valid "$dir/json"
	echo '{"schema":"profil/1"}' >"$dir/less"
	prints "the JSON schema rejects an incomplete profile" 1 sh -c "/usr/bin/python3 -c 'import json, jsonschema, sys
try: jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))
except jsonschema.ValidationError: print(1)' $dir/schema $dir/less"
	daemon_start
	"$ctl" list --json >"$dir/list" && "$ctl" status --json >"$dir/status"
	check "list and status match the JSON schema" valid "$dir/list" "$dir/status"
	daemon_stop
else
	lacks "JSON matches its schema" "python3-jsonschema"
fi
reads jq "speedscope has every sample" $((total * 10000000)) jq '.profiles[0].weights | add' "$dir/speedscope"
reads jq "speedscope has a frame for each sample" true jq '(.profiles[0].samples | length) ==
	(.profiles[0].weights | length) and ([.profiles[0].samples[][0]] | max) < (.shared.frames | length)' "$dir/speedscope"
reads python3 "gmon.out has every sample" $total gmon_sum "$dir/gmon"
reads gprof "gprof shows the shares and seconds" $'99.52 700.10 hot\n0.45 3.20 cold' gprof_rows
reads callgrind_annotate "callgrind_annotate shows the totals" $'70,345\nhot 70,010' callgrind_rows
reads perf "perf report shows the totals" $'703450000000\n700100000000 hot\n3200000000 cold\n30000000 [unmatched]\n20000000 [lost]' \
	perf_rows "$dir/perf"
reads perf "perf script shows every sample" 703450000000 perf_sum "$dir/perf"
reads perf "perf finds the build id of the program" "$(readelf -nW "$spin" | sed -n 's/.*Build ID: //p') $spin" \
	sh -c "perf buildid-list -i $dir/perf | grep /spin"
# Prints the sum of the column of samples, the number of rows, the elements that load from elsewhere, and
# whether the page has source and instructions.
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

reads /usr/bin/python3 "HTML has every sample, source and instructions, and loads nothing" "$total 5 [] True True" page
reads go "go tool pprof shows the totals" $'PeriodType: cpu nanoseconds\n70345 703450000000' go_rows
reads go "go tool pprof shows the functions" $'70010 hot\n2 [lost]' go_top

# What a reader made by protoc finds in FILE; it refuses what breaks a rule of OTLP's receivers.
otlp() { # COMMAND FILE
	/usr/bin/python3 tests/lib/otlp.py "$@"
}

# The same request, but entry 0 of the link table is not empty.
broken() {
	/usr/bin/python3 -c '
import sys
sys.path.insert(0, "tests/lib")
import otlp
request = otlp.load().ExportProfilesServiceRequest.FromString(open(sys.argv[1], "rb").read())
request.dictionary.link_table[0].span_id = bytes(8)
open(sys.argv[2], "wb").write(request.SerializeToString())' "$dir/otlp" "$dir/broken"
	otlp total "$dir/broken"
}

reads protoc "OTLP has every sample" $total otlp total "$dir/otlp"
reads protoc "OTLP has the period of CPU time" "1 samples count cpu nanoseconds 10000000" otlp types "$dir/otlp"
reads protoc "OTLP has the functions" $'2 [lost]\n3 [unmatched]\n10 [anon]+0x7f0000000000\n320 cold;"x"\n70010 hot' \
	sh -c "/usr/bin/python3 tests/lib/otlp.py names $dir/otlp | sort -n"
reads protoc "OTLP has the build id" "70330 process.executable.build_id.gnu=$(readelf -nW "$spin" | sed -n 's/.*Build ID: //p')" \
	otlp builds "$dir/otlp"
reads protoc "OTLP names the service after the program" "$total os.type=linux service.name=spin" otlp resources "$dir/otlp"
reads protoc "the reader refuses a link of zero bytes" "broken: entry 0 of the link table is not the zero value" broken

# Opens PAGE in a frame of WIDTH pixels (a window cannot be as narrow as a phone's), runs SCRIPT at its
# end, and prints the title that the script sets.
browsed() { # PAGE WIDTH SCRIPT
	sed "s|</body>|<script>$3; parent.postMessage(document.title, \"*\")</script></body>|" "$1" >"$dir/browsed.html"
	echo "<script>onmessage = (e) => (document.title = e.data)</script>" \
		"<iframe src=browsed.html width=$2 height=800 style='border: 0'></iframe>" >"$dir/frame.html"
	chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-sync \
		--disable-background-networking --disable-component-update --virtual-time-budget=5000 \
		--user-data-dir="$dir/chromium" --enable-logging=stderr --dump-dom \
		"file://$dir/frame.html" 2>"$dir/console" | sed -n 's|.*<title>\(.*\)</title>.*|\1|p'
	grep CONSOLE "$dir/console" | grep -v "source: chrome://" # of the browser itself: that it has no network
}

# sorted: the first function after two clicks, which put the fewest samples first. searched: the samples
# of the rows that a search leaves.
sorted='for (let i = 0; i < 2; i++) document.querySelectorAll("th button")[2].click();
	document.title = document.querySelector("table").tBodies[0].rows[0].querySelector(".name").textContent'
searched='const box = document.querySelector("input"); box.value = "COLD spin"; box.oninput({ target: box });
	document.title = [...document.querySelector("table").tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.cells[2].textContent).join()'
reads_by_night chromium "a click on a heading sorts the HTML table" '[anon]+0x7f0000000000' browsed "$dir/html" 1280 "${sorted//$'\n'/ }"
reads_by_night chromium "a search filters the HTML table" 320 browsed "$dir/html" 1280 "${searched//$'\n'/ }"

# Writes a profile with 800 long C++ names, and with time slices.
long_names() {
	python3 -c '
import json, sys
p = json.load(open(sys.argv[1]))
arguments = "std::vector<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, A<%s> >"
spin = p["functions"][0]["object"]
for i in range(800):
    name = "void a%d::" % i + arguments % ("x" * (i % 300)) + "::emplace_back<int, long>(int&&, long&&)"
    p["functions"].append({"name": name, "object": spin, "samples": 1, "offset": 1 << 30 | i << 4, "size": 16, "named": True})
    p["places"].append([1, 1 << 30 | i << 4, 1, 1])
p["samples"]["total"] += 800
p["samples"]["binned"] += 800
p["slice_ns"] = 10**9
for f in p["functions"]: f["slices"] = [f["samples"]] + [0] * 99
json.dump(p, open(sys.argv[2], "w"))' "$kept" "$1"
}

# The width of the window; whether the page scrolls sideways; whether there are more than 100 texts of at
# least eight characters; how many of these have room for fewer than eight.
measured='const wide = document.documentElement.scrollWidth > innerWidth;
	const ch = (e) => { const s = document.createElement("span"); s.textContent = "0".repeat(8);
		s.style.cssText = "position:absolute;display:inline"; e.append(s);
		const w = s.getBoundingClientRect().width; s.remove(); return w };
	document.querySelectorAll("details").forEach((d) => (d.open = true));
	const cells = [...document.querySelectorAll("td, .code span, .strip span, dd")].filter((e) =>
		e.getClientRects().length \&\& e.textContent.trim().length >= 8);
	const narrow = cells.filter((e) => e.clientWidth < ch(e)).length;
	document.title = [innerWidth, wide ? "scrolls" : "fits", cells.length > 100, narrow].join(" ")'
long_names "$dir/long"
"$ctl" report -f html -o "$dir/long.html" "$dir/long"
for width in 390 768 1280 2000; do
	reads_by_night chromium "HTML fits a window of $width pixels, without narrow columns" "$width fits true 0" \
		browsed "$dir/long.html" "$width" "${measured//$'\n'/ }"
done
check "HTML of 800 long names takes less than 1 MB" test "$(stat -c %s "$dir/long.html")" -lt 1000000

# The same profile with stacks: main calls hot, which calls itself and cold; one stack of cold was cut.
stacks() {
	python3 -c '
import json, sys
p = json.load(open(sys.argv[1]))
hot, cold = (f["offset"] for f in p["functions"][:2])
p["stacks"] = {"samples": 70343, "without": 0, "cuts": [],
  "ends": [{"end": e, "samples": 0, "without_frame": n} for e, n in (("whole", 0), ("no_table", 0), ("nowhere", 3))],
  "frames": [["main", 1, 16], ["hot", 1, hot], ["cold", 1, cold], [None, 0, 139637976727552]],
  "nodes": [[0, 0, 1, 20, 0], [3, 1, 1, hot, 70000], [3, 1, 1, hot + 8, 0], [5, 1, 1, hot + 4, 10], [6, 2, 1, cold, 200], [6, 2, 1, cold + 4, 100],
    [1, 2, 1, cold, 20], [0, 3, 0, 139637976727552, 10]]}
json.dump(p, open(sys.argv[2], "w"))' "$kept" "$dir/stacks"
}

check "a profile with stacks is made" stacks
for format in text json pprof otlp folded callgrind speedscope perf html markdown rows; do
	check "report writes $format with stacks" "$ctl" report -f "$format" -o "$dir/stacks.$format" "$dir/stacks"
done

# An end that only another version knows.
sed 's/"no_table"/"no_room"/' "$dir/stacks" >"$dir/stacks.other"
check "a profile with an unknown end of stacks is read" "$ctl" report -f folded -o "$dir/stacks.other.folded" "$dir/stacks.other"
sums() { # FOLDED...
	awk '{ n[FILENAME] += $NF } END { for (file in n) print n[file] }' "$@"
}
check "it has the same number of samples in stacks" test "$(sums "$dir/stacks.folded" "$dir/stacks.other.folded" | uniq | wc -l)" -eq 1

# Inclusive samples of hot, main and cold by each reader.
stacks_folded() {
	awk '{ n = $NF; $NF = ""; f = ";" $0 ";"; sub(/ ;$/, ";", f)
		total += n
		if (f ~ /;hot;/) hot += n; if (f ~ /;main;/) main += n; if (f ~ /;cold;/) cold += n }
		END { print total, hot, main, cold }' "$dir/stacks.folded"
}

stacks_go() {
	go tool pprof -top -cum -nodefraction=0 -sample_index=samples "$dir/stacks.pprof" 2>/dev/null |
		awk '$6 == "hot" || $6 == "main" || $6 == "cold" { print $6, $4 }' | sort
}

stacks_speedscope() {
	jq -r '.shared.frames as $f | .profiles[0] as $p | [range($p.samples | length)] |
		map({n: ($p.weights[.] / 10000000), s: ($p.samples[.] | map($f[.].name))}) | . as $all |
		(["cold", "hot", "main"][] | . as $w | "\($w) \([$all[] | select(.s | index($w)) | .n] | add)")' "$dir/stacks.speedscope"
}

stacks_callgrind() {
	callgrind_annotate --auto=no --inclusive=yes --threshold=100 "$dir/stacks.callgrind" |
		sed -n 's/^ *\([0-9,]*\) .*:\(hot\|main\|cold\) .*/\2 \1/p' | tr -d , | sort
}

# callgrind_annotate shortens the names of files below its working directory, but not those of callees:
# it runs in $dir, where both are the same.
stacks_callers() {
	(cd "$dir" && callgrind_annotate --auto=no --tree=caller --threshold=100 "$dir/stacks.callgrind") |
		sed -n 's/^ *\([0-9,]*\) .* < .*:\(hot\|main\|cold\) .*/\2 \1/p' | tr -d , | sort -u
}

# main is at no address of the program: perf names only hot and cold.
stacks_perf() {
	perf report -i "$dir/stacks.perf" --stdio --children -g none -F overhead_children,period,sym 2>/dev/null |
		awk '$4 == "hot" || $4 == "cold" { print $4, $1, $2 }' | sort
}

perf_chain() {
	perf script -i "$dir/stacks.perf" -F ip,sym,period 2>/dev/null |
		awk '/^ *1000000000 / { on = 1; next } NF == 0 { on = 0 } on { printf "%s ", $2 } END { print "" }'
}

inclusive=$'cold 320\nhot 70310\nmain 70310'
prints "folded stacks have every sample and the inclusive samples" "$total 70310 70310 320" stacks_folded
prints "folded stacks begin with the caller, and those with the same names are one line" 1 grep -c '^spin;main;hot;hot;cold 300$' "$dir/stacks.folded"
prints "folded stacks mark a stack that was cut" 1 grep -c '^spin;.cut: no unwind rules.;cold 20$' "$dir/stacks.folded"
reads go "go tool pprof shows the inclusive samples" "$inclusive" stacks_go
reads go "go tool pprof -peek shows callers" 1 sh -c "go tool pprof -peek '^cold\$' -sample_index=samples $dir/stacks.pprof 2>/dev/null | grep -c '300.*hot'"
reads protoc "OTLP has every stack" $'2 [lost]\n3 [unmatched]\n10 [anon]+0x7f0000000000\n10 main;hot;hot\n20 [cut: no unwind rules];cold\n300 main;hot;hot;cold\n70000 main;hot' \
	sh -c "/usr/bin/python3 tests/lib/otlp.py stacks $dir/stacks.otlp | sort -n"
reads perf "perf script shows every sample of stacks" 703450000000 perf_sum "$dir/stacks.perf"
reads perf "perf report shows the inclusive samples" $'cold 0.45% 3200000000\nhot 99.95% 700100000000' stacks_perf
reads perf "perf script shows the callers" 'cold hot hot [unknown] ' perf_chain
reads jq "speedscope has the inclusive samples" "$inclusive" stacks_speedscope
reads callgrind_annotate "callgrind_annotate shows the inclusive samples" "$inclusive" stacks_callgrind
reads callgrind_annotate "callgrind_annotate shows callers" $'hot 300\nmain 70310' stacks_callers
reads jq "JSON says how many stacks are complete" '[70320,20]' jq -c '[.stacks.ends[0,1].samples]' "$dir/stacks.json"
tree() { # ARGS...
	"$ctl" report "$@" "$dir/stacks" | awk '/%/ && $NF ~ /^(main|hot|cold)$/ { print $1, $(NF - 2), $NF }'
}

prints "--tree shows inclusive and own shares" $'99.95 0.00 main\n99.95 99.52 hot' tree --tree --percent-limit 0.5
callers() { # ARGS...
	"$ctl" report "$@" "$dir/stacks" | awk '/%/ && $NF ~ /^(main|hot|cold)$/ { print $1, NF, $NF }'
}
prints "--callers shows the callers of a function, without a column of its own samples" \
	$'0.45 5 cold\n0.43 5 hot\n0.43 5 hot\n0.43 5 main' callers --callers cold -a
prints "-n limits the rows of a tree, and their callers are among these" $'99.95 0.00 main\n99.95 99.52 hot' tree --tree -n 2
check "--tree -o writes a file" "$ctl" report --tree -o "$dir/tree" "$dir/stacks"
check "--tree -o writes text" grep -q ' main$' "$dir/tree"
prints "--tree refuses a format that is not text" \
	"profilctl: report: --tree prints text, and not the format html: leave out one of them" "$ctl" report --tree -f html "$dir/stacks"
prints "--callers refuses --by" "profilctl: report: --callers shows functions, and not rows by line: leave out one of them" \
	"$ctl" report --callers hot --by line "$dir/stacks"
prints "--tree refuses --callers" "profilctl: report: --tree, --callers, --callees and --wakers are different trees: give one" \
	"$ctl" report --tree --callers hot "$dir/stacks"
prints "--callees shows the callees of a function" $'99.95 99.52 hot\n0.43 0.43 cold' tree --callees hot -a
prints "text says how many stacks are complete" "99.97 % of the stacks reach the start of their thread" \
	grep 'of the stacks' "$dir/stacks.text"

# main and twin call each other 90 times; the innermost call calls hot.
deep() {
	python3 -c '
import json, sys
p = json.load(open(sys.argv[1]))
hot = p["functions"][0]["offset"]
p["stacks"]["frames"] = [["main", 1, 16], ["hot", 1, hot], ["twin", 1, 32]]
p["stacks"]["nodes"] = [[i + 2 if i else 0, 2 * (i % 2), 1, 16, 0] for i in range(91)] + [[93, 1, 1, hot, 70000]]
json.dump(p, open(sys.argv[2], "w"))' "$dir/stacks" "$dir/deep"
}

# Prints the indent of the rows of a tree, and their names.
indents() { # COLUMNS LINES
	COLUMNS=$1 "$ctl" report --tree "$dir/deep" |
		awk '/%  / { sub(/.*%  /, ""); n = match($0, /[^ ]/) - 1; sub(/^ */, ""); print n, $0 }' | sed -n "$2"
}

check "a profile of deep stacks is made" deep
prints "--tree writes the depth of calls that are not indented further" $'24 main\n24 (25) twin\n24 (91) hot' indents 80 "26,27p;\$p"
prints "--tree indents as far as the terminal allows" $'84 main\n84 (85) twin' indents 200 '86,87p'

# The main of two files, which both call hot.
check "a profile of two programs is made" python3 -c '
import json, sys
p = json.load(open(sys.argv[1]))
hot = p["functions"][0]["offset"]
p["objects"].append({"path": "/bin/other", "build_id": ""})
p["stacks"]["frames"] = [["main", 1, 16], ["hot", 1, hot], ["main", 2, 16]]
p["stacks"]["nodes"] = [[0, 0, 1, 20, 0], [3, 1, 1, hot, 40000], [0, 2, 2, 20, 0], [5, 1, 1, hot, 30000]]
json.dump(p, open(sys.argv[2], "w"))' "$dir/stacks" "$dir/programs"
prints "--tree tells roots of the same name apart by their files" $'main (spin)\n hot\nmain (other)\n hot' \
	sh -c "$ctl report --tree $dir/programs | sed -n 's/.*[0-9] %  \\( *[mh].*\\)/\\1/p'"
prints "--tree refuses a profile without stacks" "profilctl: report: this profile has no stacks: record it with -g" "$ctl" report --tree "$kept"
finish
