#!/bin/bash
# reports.sh - report, diff and annotate over synthetic profiles; and doctor
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
spin=$dir/spin
${CC:-gcc} -O2 -g -o "$spin" tests/programs/spin.c -ldl -pthread || exit 1

address() { # SYMBOL
	printf '%d\n' $((0x$(nm "$spin" | awk -v f="$1" '$3 == f { print $1 }')))
}

offset() { # SYMBOL
	local vaddr off

	read -r off vaddr < <(readelf -lW "$spin" | awk '$1 == "LOAD" && / R E / { print $2, $3 }')
	printf '%d\n' $(($(address "$1") - vaddr + off))
}

# Prints a profile of two functions with so many samples each: of hot and cold, or of the two NAMEs.
# The samples lie at the functions' starts, or at the symbols PLACE.
keep() { # SAMPLES SAMPLES [NAME NAME [PLACE [PLACE]]]
	local hot cold vaddr

	hot=$(offset "${3:-hot}") cold=$(offset "${4:-cold}")
	vaddr=$(($(address "${3:-hot}") - hot))
	cat <<-END
		{"schema":"profil/1","command":"spin","pid":1,"started":1700000000,"command_status":0,
		"tick_ns":1000000,"duration_ns":10000000000,"cpu_ns":0,
		"samples":{"total":$(($1 + $2)),"binned":$(($1 + $2)),"unmatched":0,"lost":0},
		"functions":[
		{"name":"${3:-hot}","object":"$spin","samples":$1,"offset":$hot,"size":48,"named":true},
		{"name":"${4:-cold}","object":"$spin","samples":$2,"offset":$cold,"size":48,"named":true}],
		"objects":[{"path":"$spin","build_id":"$(readelf -nW "$spin" |
			sed -n 's/.*Build ID: //p')","vaddr":$vaddr,"program":true}],
		"places":[[0,$(offset "${5:-${3:-hot}}"),1,$1],[0,$(offset "${6:-${4:-cold}}"),1,$2]]}
	END
}

keep 7000 3000 >"$dir/a"
odd=$dir/$'caf\xe9'
cp "$spin" "$odd" # as it is now
keep 7070 2930 >"$dir/noise"
keep 14140 5860 | sed 's/"duration_ns":10/"duration_ns":20/' >"$dir/longer"
keep 6500 3500 >"$dir/slower"
keep 0 0 | sed 's/"functions":\[/&],"x":[/; s/"places":\[/&],"y":[/' >"$dir/empty"

# ok when the command prints a line that matches PATTERN.
says() { # NAME PATTERN COMMAND...
	local name=$1 pattern=$2 said

	shift 2
	said=$("$@" 2>&1)
	if grep -Eq -- "$pattern" <<<"$said"; then ok "$name"; else fail "$name" "no \"$pattern\" in: $said"; fi
}

says "diff does not report noise as a change" '^none of 2 functions changed' "$ctl" diff "$dir/a" "$dir/noise"
says "diff lists unchanged functions as well" '^   70.00 +70.70 +.0.70 .* 0.700 +0.707 +.0.007  hot +spin$' \
	"$ctl" diff "$dir/a" "$dir/noise"
says "diff compares profiles of unlike length by CPUs in use" '^   70.00 +70.70 +.0.70 .* 0.700 +0.707 +.0.007  hot +spin$' \
	"$ctl" diff "$dir/a" "$dir/longer"
says "diff has columns of CPUs in use" ' A CPUs +B CPUs +change ' "$ctl" diff "$dir/a" "$dir/longer"
says "diff marks a significant change" '^[*] *30.00 +35.00 +\+5.00 .* cold +spin$' "$ctl" diff "$dir/a" "$dir/slower"
says "diff counts the changes of both directions" '^2 of 2 functions changed' "$ctl" diff "$dir/a" "$dir/slower"
says "diff --json writes JSON" '"significant":true' "$ctl" diff --json "$dir/a" "$dir/slower"
sed 's/"tick_ns":1000000/&,"event":"off-cpu"/' "$dir/a" >"$dir/asleep"
says "diff of off-CPU time has columns of threads asleep" ' A asleep +B asleep +change ' "$ctl" diff "$dir/asleep" "$dir/asleep"
says "diff refuses one file" 'needs two files' "$ctl" diff "$dir/a"
fails_on() { # STATUS PERCENT BEFORE AFTER
	"$ctl" diff --fail-on "$2" "$dir/$3" "$dir/$4" >"$dir/out" 2>"$dir/said"
	test $? -eq "$1" || { cat "$dir/said"; return 1; }
}

check "diff --fail-on ends with 7 when a share has grown by so much" fails_on 7 5% a slower
prints "diff --fail-on says what has grown" "profilctl: diff: the share of 1 function grew by 5 points or more, most of all cold: from 30.00 to 35.00 %" \
	cat "$dir/said"
check "diff --fail-on prints the changes all the same" grep -Eq '^[*] *30.00 +35.00' "$dir/out"
check "diff --fail-on accepts a smaller growth" fails_on 0 5.01 a slower
check "diff --fail-on accepts what may be chance" fails_on 0 0.5 a noise
check "diff --fail-on refuses off-CPU time, whose changes are not judged" fails_on 2 1 asleep asleep
says "diff --fail-on refuses 0" 'must be more than 0' "$ctl" diff --fail-on 0 "$dir/a" "$dir/slower"
says "diff refuses a profile without samples" 'empty has no samples' "$ctl" diff "$dir/a" "$dir/empty"

# Samples of an event are not of time.
for side in a slower; do
	sed 's/"tick_ns":1000000/"tick_ns":0,"event":"page-faults","period":1/' "$dir/$side" >"$dir/$side.faults"
done
says "diff of an event has no columns of CPUs in use" '^ +A % +B % +change +(99 % of all +)?function +object$' "$ctl" diff "$dir/a.faults" "$dir/slower.faults"
says "diff of an event lists its changes" '^[*] *30.00 +35.00 +\+5.00( +\+3.14.. +\+6.86)? +cold +spin$' "$ctl" diff "$dir/a.faults" "$dir/slower.faults"
check "diff --json has seconds of CPU time" grep -q '"seconds"' <("$ctl" diff --json "$dir/a" "$dir/slower")
check "diff --json has no seconds of events" sh -c "! '$ctl' diff --json '$dir/a.faults' '$dir/slower.faults' | grep seconds"

line=$(grep -n 'CHAIN(7' tests/programs/spin.c | sed 's/:.*//')
says "annotate names the source file" "^$PWD/tests/programs/spin.c$" "$ctl" annotate hot "$dir/a"
says "annotate shows the samples of a line" "^ +7000 100.00 % .* ([0-9]+  )?.*" "$ctl" annotate hot "$dir/a"
says "annotate shows the source text" "  $line  	?CHAIN|  $line   CHAIN" "$ctl" annotate hot "$dir/a"
says "annotate shows the function's share of all samples" '7000 samples, 70.00 % of 10000' "$ctl" annotate hot "$dir/a"
if command -v objdump >/dev/null; then
	says "annotate shows the samples of an instruction" '^ +7000 100.00 % +[0-9a-f]+: ' "$ctl" annotate hot "$dir/a"
	says "annotate leaves out instructions far from samples" '^ +[.]{3} [0-9]+ instructions' "$ctl" annotate hot "$dir/a"
else
	lacks "annotate shows the samples of an instruction" "objdump"
fi
says "annotate --all shows every instruction" '^ +[0-9a-f]+: +ret' "$ctl" annotate --all hot "$dir/a"
says "annotate accepts a part of a name" '^cold in ' "$ctl" annotate ol "$dir/a"
says "annotate accepts a regular expression" '^cold in ' "$ctl" annotate '/^c.*d$/' "$dir/a"
says "annotate takes the hottest of several matches" '^hot in ' "$ctl" annotate '/o/' "$dir/a"
says "annotate lists the other matches" '^ +3000  cold$' "$ctl" annotate '/o/' "$dir/a"

# A source line of a stranger's, with what controls a terminal or turns text around.
printf 'int f(void) { /* x\033[2J\302\2331m\342\200\256y */ return 1; }\nint main(void) { return f(); }\n' >"$dir/turned.c"
${CC:-gcc} -w -O0 -g -o "$dir/turned" "$dir/turned.c" || exit 1
spin=$dir/turned keep 9 1 f main >"$dir/turned-source"
"$ctl" annotate f "$dir/turned-source" >"$dir/turned-text" 2>&1
check "annotate shows a source line without its control characters" grep -Eq '9 100.00 % .* /[*] x *\[2J *1m *y [*]/' "$dir/turned-text"
check "annotate prints no control character of a source line" \
	python3 -c 'import sys; t = open(sys.argv[1]).read(); sys.exit(any(c in t for c in "\x1b\x9b\u202e"))' "$dir/turned-text"

# A template's name in 600 columns: the report's short form, in the head and among the other matches.
long="void std::sort<std::$(printf 'x%.0s' {1..600})>(int*)"
sed "s/\"name\":\"hot\"/\"name\":\"$long\"/; s/\"name\":\"cold\"/\"name\":\"${long/sort/stable_sort}\"/" "$dir/a" >"$dir/long"
says "annotate shortens the name in its head" '^std::sort<[.]{3}> in ' "$ctl" annotate sort "$dir/long"
says "annotate shortens the names of other matches" '^ +3000  std::stable_sort<[.]{3}>$' "$ctl" annotate /sort/ "$dir/long"
says "annotate --full-names shortens no name" '^void std::sort<std::x+>[(]int[*][)] in ' "$ctl" annotate --full-names sort "$dir/long"
says "annotate refuses an invalid regular expression" 'not a regular expression' "$ctl" annotate '/(/' "$dir/a"
says "annotate refuses a function without samples" 'no function tepid has samples' "$ctl" annotate tepid "$dir/a"
says "annotate refuses to run without a file" 'needs a function and files' "$ctl" annotate hot
id=$(readelf -nW "$spin" | sed -n 's/.*Build ID: //p')
mkdir -p "$dir/served/buildid/$id"
objcopy --only-keep-debug "$spin" "$dir/served/buildid/$id/debuginfo"
strip "$spin"
# Serves DIRECTORY by HTTP as debuginfod does, on a free port: $port. The server's pid is $server.
serve() { # DIRECTORY
	exec {answers}< <(exec python3 -c '
import functools, http.server, sys
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args): pass
server = http.server.HTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=sys.argv[1]))
print(server.server_port, flush=True)
server.serve_forever()' "$1")
	server=$!
	read -r -t 30 -u "$answers" port
}

fetched() { # URL
	DEBUGINFOD_URLS=$1 DEBUGINFOD_CACHE_PATH=$dir/cache http_proxy='' "$ctl" annotate hot "$dir/a"
}

says "annotate reports that a stripped file has no source lines" 'no line of source is known' "$ctl" annotate hot "$dir/a"
if ldconfig -p | grep -q libdebuginfod.so.1; then
	serve "$dir/served"
	says "a debuginfod server that does not answer is no error" 'no line of source is known' fetched http://127.0.0.1:1
	says "annotate fetches a debug file from debuginfod" "  $line  	?CHAIN|  $line   CHAIN" fetched "http://127.0.0.1:$port"
	kill "$server"
else
	lacks "annotate fetches a debug file from debuginfod" "libdebuginfod.so.1"
fi
# dwz moves what two debug files share to a third one, as in Debian's -dbgsym packages.
if command -v dwz >/dev/null; then
	cp "$dir/served/buildid/$id/debuginfo" "$dir/spin.debug"
	cp "$dir/spin.debug" "$dir/twin.debug"
	(cd "$dir" && dwz -m common.dwz spin.debug twin.debug && objcopy --add-gnu-debuglink=spin.debug spin)
	# shellcheck disable=SC2016 # the inner shell has it
	check "dwz makes a debug file that refers to another one" sh -c 'readelf -WS "$1" | grep -q gnu_debugaltlink' sh "$dir/spin.debug"
	says "annotate reads a debug file that dwz compressed" "  $line  	?CHAIN|  $line   CHAIN" "$ctl" annotate hot "$dir/a"
else
	lacks "annotate reads a debug file that dwz compressed" "dwz"
fi
${CC:-gcc} -O0 -o "$spin" tests/programs/spin.c -ldl -pthread
says "annotate refuses another build of the object" 'was removed or replaced' "$ctl" annotate hot "$dir/a"
while IFS='|' read -r object why; do
	sed "s|\"build_id\":\"[^\"]*\"|\"build_id\":\"\"|; s|\"$spin\"|\"$object\"|g" "$dir/a" >"$dir/elsewhere"
	says "annotate says why there are no instructions of $object" "^no instructions: $why" "$ctl" annotate hot "$dir/elsewhere"
	check "annotate does not guess why there is no source of $object" sh -c "! '$ctl' annotate hot '$dir/elsewhere' | grep 'built without -g'"
done <<-END
	[kernel]|the kernel's code is read from no file; 'objdump -d'
	[vdso]|the vdso is in no file; 'disassemble' of gdb
	[anon]|compiled at run time
	$spin|the file has no build id.*--build-id$
END

${CC:-gcc} -O2 -g -o "$spin" tests/programs/inlined.c
keep 60 40 outer main inner_at_1 >"$dir/inlined"
keep 60 40 outer other inner_at_1 inner_at_2 >"$dir/twice"
says "report --by inlined counts an inlined function by itself" '^ 60.00 % .* inner +spin$' "$ctl" report --by inlined "$dir/inlined"
says "report counts an inlined function in its caller" '^ 60.00 % .* outer +spin$' "$ctl" report "$dir/inlined"
says "report --by line names the inlined function and its caller" '^ 60.00 % .* inlined.c:4 inner \(in outer\) +spin$' "$ctl" report --by line "$dir/inlined"
if command -v go >/dev/null; then
	"$ctl" report -f pprof "$dir/inlined" >"$dir/pprof"
	says "pprof marks inlined functions" '^ +60 60.00% .* inner \(inline\)$' \
		go tool pprof -top -sample_index=samples "$dir/pprof"
else
	lacks "pprof marks inlined functions" "go"
fi
# Prints how many functions called NAME a pprof file has.
functions() { # NAME FILE
	python3 -c '
import gzip, sys
def fields(message):
    at = 0
    def number():
        nonlocal at
        n = shift = 0
        while True:
            byte = message[at]
            at, n, shift = at + 1, n | (byte & 127) << shift, shift + 7
            if byte < 128: return n
    while at < len(message):
        tag = number()
        value = number()
        if tag & 7 == 2:
            at, value = at + value, message[at:at + value]
        yield tag >> 3, value
whole = list(fields(gzip.open(sys.argv[2]).read()))
strings = [value for field, value in whole if field == 6]
print([strings[dict(fields(value))[2]].decode() for field, value in whole if field == 5].count(sys.argv[1]))' "$@"
}

says "report --by inlined adds up a function inlined in two places" '^100.00 % .* inner +spin$' "$ctl" report --by inlined "$dir/twice"
"$ctl" report -f pprof -o "$dir/pprof" "$dir/twice"
says "pprof has one function for code inlined in two places" '^1$' functions inner "$dir/pprof"
says "annotate names inlined functions" '^ +60 100.00 %  inner$' "$ctl" annotate outer "$dir/inlined"

# With -gsplit-dwarf inlined functions are described in a file beside the program.
for version in -gdwarf-4 -gdwarf-5; do
	${CC:-gcc} -O2 $version -gsplit-dwarf -c -o "$dir/spin.o" tests/programs/inlined.c
	${CC:-gcc} -o "$spin" "$dir/spin.o"
	keep 60 40 outer main inner_at_1 >"$dir/split"
	says "report --by inlined reads the .dwo file of $version" '^ 60.00 % .* inner +spin$' "$ctl" report --by inlined "$dir/split"
done
dwo=$(echo "$dir"/*.dwo)
mv "$dwo" "$dir/away"
says "report says that a .dwo file is missing" 'spin.dwo: no such file.*inlined functions are not shown$' \
	"$ctl" report --by inlined "$dir/split"
if test "$(id -u)" -eq 0; then
	cp "$dir/away" "$dwo"
	chown 65534 "$dwo"
	says "root reads no .dwo file of another user" "another user can replace it: .* are not shown$" "$ctl" report --by inlined "$dir/split"
else
	skip "root reads no .dwo file of another user" "needs root"
fi
rm -f "$dwo"

# libdw opens the file by its path, later: no other user may be able to replace it there.
away=$spin
mkdir -m 777 "$dir/open"
spin=$dir/open/spin
${CC:-gcc} -O2 -gdwarf-5 -gsplit-dwarf -c -o "$spin.o" tests/programs/inlined.c
${CC:-gcc} -o "$spin" "$spin.o"
keep 60 40 outer main inner_at_1 >"$dir/split"
says "no .dwo file is read in a folder that others may write" "another user can replace it: .* are not shown$" "$ctl" report --by inlined "$dir/split"
chmod 755 "$dir/open"
says "the same file is read once they may not" '^ 60.00 % .* inner +spin$' "$ctl" report --by inlined "$dir/split"
chmod 777 "$dir/open"
rm -f "$dir/open"/*.dwo
says "a .dwo file that others may create is not looked for" "another user can replace it: .* are not shown$" "$ctl" report --by inlined "$dir/split"
chmod 755 "$dir/open"

# Makes the program by COMPILER, its .dwo files into $spin.dwp by PACKER, and removes them.
pack() { # PACKER COMPILER VERSION
	"$2" -O2 "$3" -gsplit-dwarf -Dnoipa=noinline -c -o "$spin.o" tests/programs/inlined.c
	"$2" -O2 "$3" -gsplit-dwarf -c -o "$spin.2.o" -xc - <<<'int unrelated(int i) { return i; }'
	"$2" -o "$spin" "$spin.2.o" "$spin.o"
	keep 60 40 outer main inner_at_1 >"$dir/split"
	rm -f "$spin.dwp"
	"$1" -e "$spin" -o "$spin.dwp" && rm -f "$dir/open"/*.dwo
}

damage() { # KIND: "cut" to each length, or "index", each word of it with all bits set
	python3 - "$1" "$spin.dwp" "$ctl" report --by inlined "$dir/split" <<'END'
import subprocess, sys
kind, path, command = sys.argv[1], sys.argv[2], sys.argv[3:]
whole = open(path, "rb").read()
at = next(int(l.split()[4], 16) for l in subprocess.run(["readelf", "-SW", path], capture_output=True, text=True).stdout.replace("[ ", "[").splitlines() if "_cu_index" in l)
variants = [whole[:n] for n in range(0, len(whole), 97)] if kind == "cut" else \
           [whole[:i] + b"\xff" * 4 + whole[i + 4:] for i in range(at, at + 96, 4)]
said = set()
for v in variants:
    open(path, "wb").write(v)
    r = subprocess.run(command, capture_output=True, text=True)
    if r.returncode or "100 samples" not in r.stdout or " inner " not in r.stdout and "are not shown" not in r.stderr:
        sys.exit(f"{kind}: status {r.returncode}: {r.stdout}{r.stderr}")
    said.add(r.stderr)
open(path, "wb").write(whole)
sys.exit(not any("damaged" in s for s in said))
END
}

for packed in "dwp ${CC:-gcc} -gdwarf-4" "llvm-dwp ${CC:-gcc} -gdwarf-5" "dwp clang -gdwarf-4" "llvm-dwp clang -gdwarf-5"; do
	read -r packer compiler version <<<"$packed"
	name="a .dwp file by $packer of $compiler $version is read"
	if ! command -v "$packer" >/dev/null; then
		lacks "$name" "$packer"
		continue
	fi
	pack "$packer" "$compiler" "$version"
	says "$name" '^ 60.00 % .* inner +spin$' "$ctl" report --by inlined "$dir/split"
	says "its lines are, too" '^ 60.00 % .* inlined.c:[0-9]+ inner \(in outer\) +spin$' "$ctl" report --by line "$dir/split"
	check "it may end anywhere" damage cut
	check "its index may say anything" damage index
done
cp "$spin.dwp" "$dir/away"
head -c 4096 "$ctl" | tail -c 4000 >"$spin.dwp"
says "a file of something else is no .dwp file" 'spin.dwp: it is no package of .dwo files, or damaged: .* are not shown$' \
	"$ctl" report --by inlined "$dir/split"
cp "$dir/away" "$spin.dwp"
${CC:-gcc} -O1 -gdwarf-5 -gsplit-dwarf -c -o "$spin.o" tests/programs/inlined.c
${CC:-gcc} -o "$spin" "$spin.o" && rm -f "$dir/open"/*.dwo
keep 60 40 outer main inner_at_1 >"$dir/split"
says "a .dwp file of another build is not used" 'spin.dwp: it is of another build, or damaged: .* are not shown$' \
	"$ctl" report --by inlined "$dir/split"
rm -f "$spin.dwp"
${CC:-gcc} -O2 -g -o "$spin" tests/programs/inlined.c
if objcopy --compress-debug-sections=zstd "$spin" 2>/dev/null; then
	keep 60 40 outer main inner_at_1 >"$dir/split"
	says "sections compressed with zstd are read, or it is said that libelf cannot" \
		'^ 60.00 % .* inner +spin$|spin: its debug information is compressed with zstd, which libelf .* does not read' \
		"$ctl" report --by inlined "$dir/split"
else
	skip "sections compressed with zstd are read, or it is said that libelf cannot" "this objcopy does not write them"
fi
spin=$away

says "report --by thread needs a profile with threads" 'does not distinguish one thread from another' "$ctl" report --by thread "$dir/a"

# report names the kind of a file that is not a profile, in one line.
printf 'PERFILE2xxxx' >"$dir/perf.data"
"$ctl" report -f pprof -o "$dir/a.gz" "$dir/a"
head -c 300 "$dir/a" >"$dir/short"
"$ctl" report -f json -o "$dir/a.json" "$dir/a"
echo '{"x":1}' >"$dir/other.json"
echo words >"$dir/text"
: >"$dir/nothing"
while read -r file what; do
	says "report says that it cannot read $what" "^profilctl: cannot read .*: it is .*$what.*; profilctl reads what 'profilctl record -o FILE' writes$" \
		"$ctl" report "$file"
done <<-END
	$dir/perf.data a file of perf's
	$dir/a.gz gzipped
	$dir/short cut off
	$dir/a.json a report that -f json has written
	$dir/other.json JSON of something else
	$dir/text text of some other kind
	$dir/nothing empty
	/bin/sh a program
END
says "report says that a file does not exist" 'no such file' sh -c "'$ctl' report '$dir/no-such-file' 2>&1 | tr N n"
says "report reads a gzipped profile" '^ 70.00 % .* hot ' sh -c "gzip <'$dir/a' | '$ctl' report -"
says "report - reads standard input" '^ 70.00 % .* hot ' sh -c "'$ctl' report - <'$dir/a'"
says "report -n limits the functions" '^ 30.00 % .*  \(1 more\)$' "$ctl" report -n 1 "$dir/a"
says "report --percent-limit leaves out small functions" '^ 30.00 % .*  \(1 more, each below 40 %\)$' "$ctl" report --percent-limit 40 "$dir/a"

# An object whose path is not UTF-8.
mkdir -p "$dir/odd"
python3 - "$dir/a" "$dir/odd/kept" "$odd" <<'END'
import json, os, sys
p = json.load(open(sys.argv[1]))
path = os.fsencode(sys.argv[3])
p["objects"][0]["path"] = path.decode(errors="replace")
p["objects"][0]["path_hex"] = path.hex()
for f in p["functions"]: f["object"] = p["objects"][0]["path"]; f["object_index"] = 0
json.dump(p, open(sys.argv[2], "w"))
END
for format in text json pprof otlp gmon folded callgrind speedscope perf html markdown rows; do
	check "report -f $format accepts a path that is not UTF-8" "$ctl" report -f "$format" -o "$dir/odd/$format" "$dir/odd/kept"
done
says "text replaces bytes that are not UTF-8" ' hot +caf[?]$' cat "$dir/odd/text"
says "JSON has the bytes of a path that is not UTF-8" '"path_hex":"[0-9a-f]*636166e9"' cat "$dir/odd/json"
if command -v objdump >/dev/null; then
	says "annotate finds the file of a path that is not UTF-8" '^ +[0-9a-f]+: +ret' "$ctl" annotate --all hot "$dir/odd/kept"
fi
check "JSON, speedscope and HTML are UTF-8 for any path" \
	iconv -f UTF-8 -t UTF-8 -o /dev/null "$dir/odd/json" "$dir/odd/speedscope" "$dir/odd/html"

# A long C++ name is shortened to the width of the terminal, unless --full-names is given.
long='std::map<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, int>::operator[](int)'
sed "s/\"name\":\"hot\"/\"name\":\"$long\"/" "$dir/a" >"$dir/long"
says "report leaves out default template arguments" '  std::map<std::string, int>::operator\[\]  spin$' "$ctl" report "$dir/long"
says "report leaves out template arguments on a narrow terminal" '  map<...>::operator\[\] +spin$' \
	env COLUMNS=62 "$ctl" report "$dir/long"
says "report --full-names shows whole names" '  std::map<std::__cxx11::.*::operator\[\]\(int\)  spin$' "$ctl" report --full-names "$dir/long"
sed "s/\"command\":\"spin\"/\"command\":\"sh $(printf 'é%.0s' {1..300})\"/" "$dir/a" >"$dir/wordy"
says "report cuts a long command to 132 columns" '^sh (é){118}[.]{3} [(]pid 1[)]$' env -u COLUMNS LC_ALL=C.UTF-8 "$ctl" report "$dir/wordy"
says "report cuts a long command to the terminal's width" '^sh (é){46}[.]{3} [(]pid 1[)]$' \
	env COLUMNS=60 LC_ALL=C.UTF-8 "$ctl" report "$dir/wordy"
says "report --full-names shows a whole command" '^sh (é){300} [(]pid 1[)]$' "$ctl" report --full-names "$dir/wordy"
in_line() { # COLUMNS
	COLUMNS=$1 "$ctl" report "$dir/long" | awk -v w="$1" '
		/ object$/ { at = length($0) - 6 } / spin$/ { n++; if (length($0) - 4 != at || length($0) > w) exit 1 }
		END { exit n != 2 }'
}
for columns in 62 80 120 200; do
	check "objects are aligned in $columns columns" in_line $columns
done

# Two processes: sh has 70 samples in hot; gcc has 20 in cold, and 10 in the kernel, called from cold.
python3 - "$dir/a" "$dir/groups" <<'END'
import json, sys
p = json.load(open(sys.argv[1]))
p["objects"].append({"path": "[kernel]", "build_id": ""})
def group(command, pid, unit): return {"command": command, "pid": pid, "tid": 0, "uid": 0, "start_ns": 0,
    "thread": None, "cgroup": "/" + command, "unit": unit, "samples": 0}
p["groups"] = [group("", 0, None), group("sh", 10, "one.service"), group("gcc", 11, None)]
hot, cold = (f["offset"] for f in p["functions"])
p["places"] = [[0, hot, 1, 70, 1], [0, cold, 1, 20, 2], [1, 256, 1, 10, 2]]
p["folded"] = [[0, cold, 1, 6, 2], [0, cold + 4, 1, 4, 2]]
p["functions"][0]["samples"], p["functions"][1]["samples"] = 70, 20
p["functions"].append({"name": "do_it", "object": "[kernel]", "samples": 10, "offset": 256, "size": 64, "named": True})
p["processes"] = 2
p["samples"] = {"total": 100, "binned": 100, "unmatched": 0, "lost": 0}
json.dump(p, open(sys.argv[2], "w"))
END
says "report begins with the number of processes" '^spin \(2 processes\)$' "$ctl" report "$dir/groups"
says "report names the only process of a filter" '^spin \(1 process, pid 11\)$' "$ctl" report --command gcc "$dir/groups"
sed 's/"lost": 0}/"lost": 0, "group_full": 1}/' "$dir/groups" >"$dir/crowded"
says "report says that there may be more processes than the table had room for" '^spin \(at least 2 processes\)$' \
	"$ctl" report "$dir/crowded"
says "report --by command adds up by command" '^ 70.00 % .* 70 +0.070  sh$' "$ctl" report --by command "$dir/groups"
says "report --by process adds up by process" '^ 30.00 % .* 30 +0.030  gcc \(11\)$' "$ctl" report --by process "$dir/groups"
says "report --by cgroup adds up by cgroup" '^ 70.00 % .*  /sh$' "$ctl" report --by cgroup "$dir/groups"
says "report --by unit adds up by unit" '^ 30.00 % .*  \(no unit\)$' "$ctl" report --by unit "$dir/groups"
says "report --by unit shows a row without any unit" '^100.00 % .*  \(no unit\)$' \
	"$ctl" report --by unit <(sed 's/"one.service"/null/' "$dir/groups")
says "report --by thread refuses a profile without threads" 'does not distinguish one thread .*--threads$' "$ctl" report --by thread "$dir/groups"
says "folded stacks begin with the command" '^gcc;[[]kernel];do_it 10$' "$ctl" report -f folded "$dir/groups"
says "folded stacks have a line for each command" '^sh;spin;hot 70$' "$ctl" report -f folded "$dir/groups"
says "report shows the share of the kernel" '10.00 % in the kernel, 90.00 % in user mode' "$ctl" report "$dir/groups"
sed 's/"do_it"/"[kernel]"/' "$dir/groups" >"$dir/nameless"
says "report says why the kernel has no names" '^functions of the kernel have no names' "$ctl" report "$dir/nameless"
check "report does not say so if it has some" sh -c "! '$ctl' report '$dir/groups' | grep '^functions of the kernel have'"
# What a profile lacks has a line.
shortcoming() { # MEMBER NUMBER LINE
	sed "s/\"lost\": 0}/\"lost\": 0, \"$1\": $2}/" "$dir/groups" >"$dir/short"
	says "report says: $3" "^$3$" "$ctl" report "$dir/short"
}
shortcoming image_full 2 '2 samples were lost for want of room for another file'
shortcoming group_full 2 '2 samples are without a group: the table of groups is full'
shortcoming place_full 2 '2 samples are counted by file only: the table of places is full; profile for a shorter time, or fewer processes'
shortcoming unfollowed 1 '1 process could not be followed'
shortcoming unfollowed 2 '2 processes could not be followed'
shortcoming secret 1 '1 process executed what may not be observed, and left'
shortcoming secret 2 '2 processes executed what may not be observed, and left'
shortcoming hidden_ns 1500000000 '1.500 s of CPU time of processes that may not be observed'
shortcoming sleepers_full 2 '2 sleeps are not counted: more threads slept than the table has room for'
shortcoming unseen_ns 1500000000 '1.500 s of CPU time of threads that ended before their first sample'
check "report says nothing of what a profile does not lack" sh -c "! '$ctl' report '$dir/groups' |
	grep -E 'full|want of room|followed|not be observed|not counted|first sample'"
says "report --fold-kernel counts kernel samples in user functions" '^ 30.00 % .*  cold +spin$' "$ctl" report --fold-kernel "$dir/groups"
says "report --fold-kernel does not change the totals" '^100 samples: 100 binned, 0 unmatched, 0 lost$' "$ctl" report --fold-kernel "$dir/groups"
# Longer than any name of a function.
jq --arg path "/$(printf 'a/%.0s' {1..9000})spin" '.functions[0] += {object: $path, name: "", named: false} |
	.functions[1].object = $path | .objects[0].path = $path' "$dir/a" >"$dir/deep"
"$ctl" report --function 'spin+0x1000' "$dir/deep" >"$dir/out" 2>&1
check "report --function finds no function of an object with too long a path" test $? -eq 1
says "it says so" '^profilctl: report: no function spin.0x1000 has samples$' cat "$dir/out"
says "report --object filters by object" '^only object spin: 90 of 100 samples$' "$ctl" report --object spin "$dir/groups"
says "report --object accepts a pattern" '^100.00 % .*  do_it ' "$ctl" report --object '[[]kern*' "$dir/groups"
says "report --object accepts a name in brackets" '^100.00 % .*  do_it ' "$ctl" report --object '[kernel]' "$dir/groups"
says "report --process filters by pid" '^ 33.33 % .*  do_it ' "$ctl" report --process 11 "$dir/groups"
says "report --command filters by command" '^100.00 % .*  hot ' "$ctl" report --command 's*' "$dir/groups"
says "report --function filters by function" '^only function cold: 20 of 100 samples$' "$ctl" report --function cold "$dir/groups"
says "report --function refuses a function without samples" 'no function warm has samples' "$ctl" report --function warm "$dir/groups"
says "report --process needs a profile with processes" 'does not distinguish processes' "$ctl" report --process 1 "$dir/a"
says "report --tree --command says how to record the stacks of these processes" "'profilctl attach --comm sh -g'$" \
	"$ctl" report --tree --command sh "$dir/groups"
says "report --tree --process does so for a pid" "'profilctl attach 11 -g'$" "$ctl" report --tree --process 11 "$dir/groups"
python3 - "$dir/a" "$dir/none" <<'END'
import json, sys
p = json.load(open(sys.argv[1]))
p["samples"] = {"total": 0, "binned": 0, "unmatched": 0, "lost": 0}
p["places"], p["functions"] = [], []
json.dump(p, open(sys.argv[2], "w"))
END
says "report --tree says that a profile has no samples" '^profilctl: report: this profile has no samples$' "$ctl" report --tree "$dir/none"
says "report refuses a filter that selects nothing" 'no samples are of command nothere$' \
	"$ctl" report --command nothere "$dir/groups"
says "report says why folding leaves no samples of the kernel" 'no samples are of object .kernel., if those in the kernel are' \
	"$ctl" report --fold-kernel --object '[kernel]' "$dir/groups"
# A file that was replaced, and memory of two processes.
python3 - "$dir/a" "$dir/alike" <<'END'
import json, sys
p = json.load(open(sys.argv[1]))
p["objects"] = [{"path": "/bin/A", "build_id": "0123456789abcdef"}, {"path": "/bin/A", "build_id": "fedcba9876543210"},
    {"path": "[anon]", "build_id": "", "pid": 11}, {"path": "[anon]", "build_id": "", "pid": 12}, {"path": "/bin/B", "build_id": "aaaaaaaaaa"}]
p["places"] = [[i, 256, 1, 20] for i in range(5)]
p["functions"] = [{"name": "main", "object": o["path"], "samples": 20, "offset": 256, "size": 64, "named": True} for o in p["objects"]]
for i, f in enumerate(p["functions"]): f["object_index"] = i
p["samples"] = {"total": 100, "binned": 100, "unmatched": 0, "lost": 0}
json.dump(p, open(sys.argv[2], "w"))
END
for row in 'A [(]01234567[)]' 'A [(]fedcba98[)]' '[[]anon[]] [(]pid 11[)]' '[[]anon[]] [(]pid 12[)]' B; do
	says "report tells objects of one path apart: $row" "^ 20.00 % .* $row$" "$ctl" report "$dir/alike"
	says "report --by object tells them apart: $row" "^ 20.00 % .*$row$" "$ctl" report --by object "$dir/alike"
done

# The machine profile: commands have sums by object.
python3 - "$dir/groups" "$dir/machine" <<'END'
import json, sys
p = json.load(open(sys.argv[1]))
p["sums"] = [[0, 0, 0, 70, 1], [0, 0, 0, 20, 2], [1, 0, 0, 10, 2]]
p["places"] = [place[:4] for place in p["places"]]
for group in p["groups"]: group["pid"] = 0
json.dump(p, open(sys.argv[2], "w"))
END
says "report --by command adds up the machine's profile" '^ 70.00 % .*  sh$' "$ctl" report --by command "$dir/machine"
says "report --object filters the commands of the machine's profile" '^ 77.78 % .*  sh$' \
	"$ctl" report --object spin --by command "$dir/machine"
for filter in "--command sh" "--process sh" "--command sh --by object" "--function hot --by command" \
	"--function hot --by unit" "--fold-kernel --by cgroup"; do
	# shellcheck disable=SC2086 # options and values
	says "report $filter refuses the machine's profile" "^profilctl: report: .* by file only, .*record -a -o FILE" \
		"$ctl" report $filter "$dir/machine"
done
says "report --function filters the machine's profile" '^only function hot: 70 of 100' "$ctl" report --function hot "$dir/machine"
for verb in record attach top; do
	says "$verb --object refers to report" "^profilctl: $verb: .* -o FILE.*'profilctl report --object NAME FILE'$" \
		"$ctl" "$verb" --object=spin
done
for part in status on top diff; do
	says "machine $part --object refers to machine report" \
		"^profilctl: machine $part: --object is an option of report: 'profilctl machine report --object NAME'$" \
		"$ctl" machine $part --object x
done
says "machine --tree refers to report" "^profilctl: machine status: .* -o FILE.*'profilctl report --tree FILE'$" "$ctl" machine --tree
check "filtered JSON adds up" sh -c "'$ctl' report -f json --command gcc '$dir/groups' | python3 -c '
import json, sys
p = json.load(sys.stdin)
assert sum(f[\"samples\"] for f in p[\"functions\"]) == p[\"samples\"][\"binned\"] == p[\"samples\"][\"total\"] == 30'"
if command -v go >/dev/null; then
	"$ctl" report -f pprof "$dir/groups" >"$dir/pprof"
	says "pprof has a tag for the command" 'command: Total 100' go tool pprof -tags -sample_index=samples "$dir/pprof"
	says "pprof has a tag for kernel mode" '^ +10 10.00% .* do_it$' \
		go tool pprof -top -sample_index=samples -tagfocus=mode=kernel "$dir/pprof"
fi

"$ctl" diff --json "$dir/a" "$dir/slower" >"$dir/diff.json"
"$ctl" report --json -o "$dir/groups.json" "$dir/groups"
if python3 -c 'import jsonschema' 2>/dev/null; then
	check "profiles and reports match the JSON schema" python3 -c '
import json, jsonschema, sys
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
for name in sys.argv[2:]: jsonschema.validate(json.load(open(name)), schema)' \
		src/profile/schema.json "$dir/a.json" "$dir/groups.json" "$dir/odd/json" "$dir/diff.json"
fi

# Runs COMMAND on a terminal of 10 lines and 80 columns, with PAGER as its pager.
on_terminal() { # PAGER COMMAND...
	PAGER=$1 TERM=xterm script -qec "stty rows 10 cols 80; $2" /dev/null </dev/null
}
says "report on a terminal uses the pager" '^PAGED:.* hot ' on_terminal "sed s/^/PAGED:/" "'$ctl' report '$dir/a'"
says "the pager gets colours" $'PAGED:\033' on_terminal "sed s/^/PAGED:/" "'$ctl' report '$dir/a'"
says "the pager gets lines of the terminal's width" 'PAGED:   70.00   70.70 ' on_terminal "sed s/^/PAGED:/" "'$ctl' diff '$dir/a' '$dir/noise'"
says "a pager that ends early is no error" '^status 0' on_terminal true "'$ctl' annotate --all hot '$dir/a'; echo status \$?"
says "PAGER=cat turns the pager off" '^ 30.00 % .* cold ' on_terminal cat "NO_COLOR=1 '$ctl' report '$dir/a'"
says "report uses no pager without a terminal" '^ 30.00 % .* cold ' env PAGER=false TERM=xterm "$ctl" report "$dir/a"
says "doctor reports that no daemon answers" '^(note|lack)  *profild ' "$ctl" doctor -s "$dir/no-daemon"
says "doctor tells how to start the daemon" '-> systemctl enable' "$ctl" doctor -s "$dir/no-daemon"
daemon_start
says "doctor reports that the daemon answers" '^ok    profild     answers' "$ctl" doctor
says "doctor --json writes JSON" '"what":"kernel"' "$ctl" doctor --json
check "doctor returns 0 when nothing is missing" "$ctl" doctor
daemon_stop
if test "$(id -u)" -eq 0; then
	setpriv --reuid=65534 --regid=65534 --clear-groups "$ctl" doctor -s "$dir/no-daemon" >"$dir/out"
	check "doctor returns 5 for a user without rights and without a daemon" test $? -eq 5
	says "doctor names the missing privileges" '^lack  privileges ' cat "$dir/out"
else
	skip "doctor returns 5 for a user without rights and without a daemon" "needs root"
	skip "doctor names the missing privileges" "needs root"
fi
finish
