#!/bin/bash
# reports.sh - what is made of profiles that were kept: diff, annotate; and doctor, which needs none
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

ctl=$BUILD/profilctl
spin=$dir/spin
${CC:-gcc} -O2 -g -o "$spin" tests/system/programs/spin.c -ldl -pthread || exit 1

address() { # SYMBOL
	printf '%d\n' $((0x$(nm "$spin" | awk -v f="$1" '$3 == f { print $1 }')))
}

offset() { # SYMBOL
	local vaddr off

	read -r off vaddr < <(readelf -lW "$spin" | awk '$1 == "LOAD" && / R E / { print $2, $3 }')
	printf '%d\n' $(($(address "$1") - vaddr + off))
}

# A profile in which hot has $1 samples and cold $2, or two other functions; $5 and $6 are in
# them.
keep() { # SAMPLES SAMPLES [NAME NAME [PLACE [PLACE]]]
	local hot cold vaddr

	hot=$(offset "${3:-hot}") cold=$(offset "${4:-cold}")
	vaddr=$(($(address "${3:-hot}") - hot))
	cat <<-END
		{"schema":"profil/1","command":"spin","pid":1,"started":1700000000,"command_status":0,
		"tick_ns":1000000,"duration_ns":1,"cpu_ns":0,
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
keep 7070 2930 >"$dir/noise"
keep 6500 3500 >"$dir/slower"
keep 0 0 | sed 's/"functions":\[/&],"x":[/; s/"places":\[/&],"y":[/' >"$dir/empty"

# ok when the command prints a line that matches $2.
says() { # NAME PATTERN COMMAND...
	local name=$1 pattern=$2 said

	shift 2
	said=$("$@" 2>&1)
	if grep -Eq -- "$pattern" <<<"$said"; then ok "$name"; else fail "$name" "no \"$pattern\" in: $said"; fi
}

says "diff: noise is no change" '^none of 2 functions changed' "$ctl" diff "$dir/a" "$dir/noise"
says "diff: a change is one" '^ *30.00 +35.00 +\+5.00 .* cold +spin$' "$ctl" diff "$dir/a" "$dir/slower"
says "diff: both sides are counted" '^2 of 2 functions changed' "$ctl" diff "$dir/a" "$dir/slower"
says "diff --json" '"significant":true' "$ctl" diff --json "$dir/a" "$dir/slower"
says "diff: one file is too few" 'two files, please' "$ctl" diff "$dir/a"
says "diff: nothing to compare with" 'empty has no samples' "$ctl" diff "$dir/a" "$dir/empty"

line=$(grep -n 'CHAIN(7' tests/system/programs/spin.c | sed 's/:.*//')
says "annotate: the file" "^$PWD/tests/system/programs/spin.c$" "$ctl" annotate hot "$dir/a"
says "annotate: the first line" "^ +7000 100.00 % .* ([0-9]+  )?.*" "$ctl" annotate hot "$dir/a"
says "annotate: the source" "  $line  	?CHAIN|  $line   CHAIN" "$ctl" annotate hot "$dir/a"
says "annotate: the share of all" '7000 samples, 70.00 % of 10000' "$ctl" annotate hot "$dir/a"
if command -v objdump >/dev/null; then
	says "annotate: the instruction" '^ +7000 100.00 % +[0-9a-f]+: ' "$ctl" annotate hot "$dir/a"
	says "annotate: the last instruction" '^ +[0-9a-f]+: +ret' "$ctl" annotate hot "$dir/a"
else
	skip "annotate: instructions" "no objdump"
fi
says "annotate: an unknown function" 'no sample fell into a function tepid' "$ctl" annotate tepid "$dir/a"
says "annotate: without a file" 'a function and a file, please' "$ctl" annotate hot
id=$(readelf -nW "$spin" | sed -n 's/.*Build ID: //p')
mkdir -p "$dir/served/buildid/$id"
objcopy --only-keep-debug "$spin" "$dir/served/buildid/$id/debuginfo"
strip "$spin"
# A server as debuginfod is one, on a port that is free. It answers to nothing else.
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

says "annotate: a stripped file says so" 'no line of source is known' "$ctl" annotate hot "$dir/a"
if ldconfig -p | grep -q libdebuginfod.so.1; then
	serve "$dir/served"
	says "debuginfod: nobody there is no error" 'no line of source is known' fetched http://127.0.0.1:1
	says "debuginfod: a debug file" "  $line  	?CHAIN|  $line   CHAIN" fetched "http://127.0.0.1:$port"
	kill "$server"
else
	skip "debuginfod" "no libdebuginfod.so.1"
fi
${CC:-gcc} -O0 -o "$spin" tests/system/programs/spin.c -ldl -pthread
says "annotate: another build is not taken" 'is another one by now' "$ctl" annotate hot "$dir/a"

${CC:-gcc} -O2 -g -o "$spin" tests/system/programs/inlined.c
keep 60 40 outer main inner_at_1 >"$dir/inlined"
keep 60 40 outer other inner_at_1 inner_at_2 >"$dir/twice"
says "inlined: for itself" '^ 60.00 % .* inner +spin$' "$ctl" report --by inlined "$dir/inlined"
says "inlined: in its function" '^ 60.00 % .* outer +spin$' "$ctl" report "$dir/inlined"
says "inlined: by line" '^ 60.00 % .* inlined.c:4 inner \(in outer\) +spin$' "$ctl" report --by line "$dir/inlined"
if command -v go >/dev/null; then
	"$ctl" report -f pprof "$dir/inlined" >"$dir/pprof"
	says "inlined: in pprof, too" '^ +60 60.00% .* inner \(inline\)$' \
		go tool pprof -top -sample_index=samples "$dir/pprof"
else
	skip "inlined: in pprof, too" "no go"
fi
# How many functions of a name a file for pprof has.
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

says "inlined: in two places" '^100.00 % .* inner +spin$' "$ctl" report --by inlined "$dir/twice"
"$ctl" report -f pprof -o "$dir/pprof" "$dir/twice"
says "inlined: in two places, one function for pprof" '^1$' functions inner "$dir/pprof"
says "annotate: what was inlined" '^ +60 100.00 %  inner$' "$ctl" annotate outer "$dir/inlined"

says "by thread: it takes --threads" 'record it with --threads' "$ctl" report --by thread "$dir/a"
says "doctor: no daemon" '^(note|lack)  *profild ' "$ctl" doctor -s "$dir/nobody"
says "doctor: ... has a cure" '-> systemctl enable' "$ctl" doctor -s "$dir/nobody"
daemon_start
says "doctor: a daemon" '^ok    profild     answers' "$ctl" doctor
says "doctor --json" '"what":"kernel"' "$ctl" doctor --json
check "doctor: nothing is lacking" "$ctl" doctor
daemon_stop
if test "$(id -u)" -eq 0; then
	setpriv --reuid=65534 --regid=65534 --clear-groups "$ctl" doctor -s "$dir/nobody" >"$dir/out"
	check "doctor: nobody without a daemon: status 5" test $? -eq 5
	says "doctor: ... and why" '^lack  privileges ' cat "$dir/out"
fi
finish
