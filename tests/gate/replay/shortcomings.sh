#!/bin/bash
# shortcomings.sh - a report says which names and samples it lacks, why, and what helps
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl

# Prints the report of the sample profile with a change: a Python statement about the profile p.
changed() { # STATEMENT [ARG...]
	sample_profile "$dir/whole" && python3 -c '
import json, sys
def add(path, samples, unnamed="", name="", stacks=None):
    p["objects"].append({"path": path, "build_id": "", "pid": len(p["objects"]), "unnamed": unnamed})
    p["places"].append([len(p["objects"]) - 1, 64, 1, samples])
    p["functions"].append({"name": name, "object": path, "object_index": len(p["objects"]) - 1, "samples": samples,
        "offset": 64, "size": 64, "named": name != ""})
    p["samples"]["total"] += samples
    p["samples"]["binned"] += samples
p = json.load(open(sys.argv[1]))
exec(sys.argv[2])
json.dump(p, open(sys.argv[3], "w"))' "$dir/whole" "$1" "$dir/changed" && "$ctl" report "$dir/changed" "${@:2}"
}

# ok when the report of the changed profile has the line once.
says() { # LINE STATEMENT
	local said

	said=$(changed "$2")
	if test "$(grep -cxF -- "$1" <<<"$said")" = 1; then ok "a report says: $1"; else fail "a report says: $1" "$said"; fi
}

# ok when the report of the changed profile has no line with WORDS.
silent() { # NAME WORDS STATEMENT
	local said

	said=$(changed "$3")
	if grep -qF -- "$2" <<<"$said"; then fail "$1" "$said"; else ok "$1"; fi
}

kernel='functions of the kernel have no names'
says "$kernel: kernel.kptr_restrict hid their addresses, from root too (record it again after 'sysctl kernel.kptr_restrict=1')" \
	'add("[kernel]", 5, "kptr_restrict", "[kernel]")'
says "$kernel: only root, or a process with CAP_SYSLOG, may read them, when it records" 'add("[kernel]", 5, "privilege", "[kernel]")'
says "$kernel: /proc/kallsyms could not be read when it was recorded" 'add("[kernel]", 5, "kallsyms", "[kernel]")'
says "$kernel: their addresses were hidden when it was recorded (by a user without CAP_SYSLOG, or by kernel.kptr_restrict=2)" \
	'add("[kernel]", 5)'
silent "a kernel with a name has names" "$kernel" 'add("[kernel]", 5, "kptr_restrict", "do_it"); add("[kernel]", 5)'

says "50.00 % is code that node compiled at run time, without names: node --perf-basic-prof, or NODE_OPTIONS=--perf-basic-prof" \
	'add("[anon]", 100, "node")'
says "50.00 % is code that java compiled at run time, without names: 'jcmd PID Compiler.perfmap' while it runs, or java -XX:+DumpPerfMapAtExit" \
	'add("[anon]", 60, "java"); add("[anon]", 40, "java")'
says "33.33 % is code that node compiled at run time, without names: node --perf-basic-prof, or NODE_OPTIONS=--perf-basic-prof" \
	'add("[anon]", 100, "node"); add("[anon]", 100, "java")'
says "50.00 % is code made at run time that no perf map (/tmp/perf-PID.map) names" 'add("[anon]", 100)'
says "50.00 % is code made at run time that no perf map (/tmp/perf-PID.map) names" 'add("[anon]", 100, "a later runtime")'
silent "code with names lacks none" "at run time" 'add("[anon]", 100, "node", "JS:f")'
silent "a report does not mention less than 1 % without names" "at run time" 'add("[anon]", 1, "node")'

says "1 sample was lost for want of room for another file" 'p["samples"]["image_full"] = 1'
says "1 sample is without a group: the table of groups is full" 'p["samples"]["group_full"] = 1'
says "2 samples are without a group: the table of groups is full" 'p["samples"]["group_full"] = 2'
says "1 process could not be followed" 'p["samples"]["unfollowed"] = 1'
says "1 sleep is not counted: more threads slept than the table has room for" 'p["samples"]["sleepers_full"] = 1'

# One of a kind is said in the singular; a column is not written twice; a flat profile names a better view.
says "1 sample: 1 binned, 0 unmatched, 0 lost" 'p["places"] = [[0, 4100, 1, 1]]; del p["functions"][1]; p["functions"][0]["samples"] = 1
p["samples"].update(total=1, binned=1)'
check "samples of each event have no column of events" test "$(changed 'p.update(event="page-faults", period=1, tick_ns=0)' | grep -c events$'\|events ')" = 0
check "a report of a flat profile names the view by object" grep -q '(400 more, each below 0.5 %; --by object sums them up)' \
	<(changed 'p["functions"] = [dict(p["functions"][0], name=f"f{i}", offset=i * 64, samples=1) for i in range(400)]
p["places"] = [[0, i * 64, 1, 1] for i in range(400)]
p["samples"].update(total=400, binned=400)')
check "a report names the time and the CPU time" grep -qE '; 0.00 s, 2.00 s of CPU time$' <(changed 'p["cpu_ns"] = 2000000000')

# Names are of anyone's making: no format has what controls a terminal or turns text around.
hostile='add("/a\u001b\u0007\u009b\u202e\u2066x<b>", 50, "", "f\u001b\u0007\u009b\u202e\u2066\u2028y<b>"); p["command"] = "c\u009b\u202e"'
for format in text folded callgrind html markdown rows speedscope pprof json; do
	changed "$hostile" -f $format -o "$dir/clean"
	test "$format" != pprof || gunzip <"$dir/clean" >"$dir/raw"
	test "$format" = pprof || cp "$dir/clean" "$dir/raw"
	check "$format has no control characters of names" python3 -c '
import sys
text = open(sys.argv[1], "rb").read()
for bad in "\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\u2028":
    if bad.encode() in text and (sys.argv[2] != "pprof" or len(bad.encode()) > 1):
        sys.exit(ascii(bad))' "$dir/raw" "$format"
done

# A name with every character that means something in a format: each format's own reader has it
# back. Text shortens names.
special='add("/s", 5000, "", "f\"q\u0027\\b<t>&a;s=e(1)[x]{y}#%$`")'
for format in json speedscope folded callgrind html pprof; do
	changed "$special" -f $format -o "$dir/special"
	check "$format keeps every character of a name" python3 -c '
import gzip, html.parser, json, sys
name = "f\"q\u0027\\b<t>&a;s=e(1)[x]{y}#%$`"
form, data = sys.argv[2], open(sys.argv[1], "rb").read()
class Page(html.parser.HTMLParser):
    found = []
    def handle_starttag(self, tag, attrs):
        self.found += [value or "" for _, value in attrs]
        self.found += [key for key, _ in attrs]
    def handle_data(self, text):
        self.found.append(text)
if form == "json":
    names = [f["name"] for f in json.loads(data)["functions"]]
elif form == "speedscope":
    names = [f["name"] for f in json.loads(data)["shared"]["frames"]]
elif form == "folded":
    names = [frame for line in data.decode().splitlines() for frame in line.rsplit(" ", 1)[0].split(";")]
    name = name.replace(";", ":")
elif form == "callgrind":
    names = [line[3:] for line in data.decode().splitlines() if line.startswith("fn=")]
elif form == "pprof":
    names = [name] if name.encode() in gzip.decompress(data) else []
elif form == "html":
    page = Page(convert_charrefs=True)
    page.feed(data.decode())
    names = [name] if name in "".join(page.found) and "t" not in page.found else []
if name not in names:
    sys.exit(f"{names[:20]}")' "$dir/special" "$format"
done

# The same of Markdown, as GitHub's reader has it: names are in code spans, and neither make links nor end tables.
if type -p cmark-gfm >/dev/null; then
	changed 'add("/s", 5000, "", "f|`<img src=x>[a](b)*c*")' -f markdown | cmark-gfm --unsafe -e table >"$dir/special"
	check "Markdown keeps a name in its cell" grep -qF "<td><code>f|'&lt;img src=x&gt;[a](b)*c*</code></td>" "$dir/special"
	check "Markdown has no tags of names" test "$(grep -c '<img\|<a \|<em>' "$dir/special")" = 0
	check "Markdown has all functions in one table" test "$(grep -c '<table>' "$dir/special") $(grep -c '<tr>' "$dir/special")" = "1 4"
else
	lacks "Markdown keeps a name in its cell" cmark-gfm
fi

changed 'add("[anon]", 100, "node"); p["samples"]["secret"] = 2' -f html -o "$dir/page"
check "the page says it as well" test "$(grep -c '<li>.*\(NODE_OPTIONS\|2 processes executed\)' "$dir/page")" = 2
finish
