#!/bin/bash
# push.sh - machine push: a spool that is sent to a receiver of OTLP, which takes, refuses, fails and is killed
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

needs node "push"
needs protoc "push"
ctl=$BUILD/profilctl
spool=$dir/spool
receiver=
trap 'test -z "$receiver" || kill "$receiver" 2>/dev/null; lib_end' EXIT
unset "${!OTEL_@}" http_proxy HTTP_PROXY all_proxy ALL_PROXY

# Keeps profiles of COUNTS samples in $spool, one for each minute.
keep() { # COUNTS...
	rm -rf "$spool" "$dir/state"
	mkdir "$spool"
	add "$@"
}

add() { # COUNTS...
	python3 -c '
import gzip, json, sys, time
spool = sys.argv[1]
for n in map(int, sys.argv[2:]):
    began = 1700000000 + 60 * n
    p = {"schema": "profil/1", "command": "the whole machine", "pid": 0, "started": began, "tick_ns": 10000000,
         "duration_ns": 60 * 10**9, "cpu_ns": 0, "command_status": 0, "samples": {"total": n, "binned": n, "unmatched": 0, "lost": 0},
         "functions": [{"name": "hot", "object": "/bin/x", "samples": n, "offset": 16, "size": 16, "named": True}],
         "objects": [{"path": "/bin/x", "build_id": "00ff"}], "places": [[0, 16, 1, n]]}
    name = time.strftime("machine-%Y%m%dT%H%M%SZ-60s.json.gz", time.gmtime(began))
    with gzip.open(f"{spool}/.{name}", "wt") as f: json.dump(p, f)
    import os
    os.rename(f"{spool}/.{name}", f"{spool}/{name}")' "$spool" "$@"
}

# Starts the receiver, on the port of the last one if KEPT.
receive() { # BEHAVIOUR...
	test -z "$receiver" || { kill "$receiver" 2>/dev/null; wait "$receiver" 2>/dev/null; }
	test "${kept_port:-}" || rm -rf "$dir/in"
	mkdir -p "$dir/in"
	test -z "${grpc:-}" || touch "$dir/in/grpc"
	rm -f "$dir/in/ready"
	tests/lib/otlp_receiver.js "$dir/in" "$@" &
	receiver=$!
	await "$receiver" test -e "$dir/in/ready" || fail "receiver" "$(cat "$dir/await")"
	url=${grpc:-http}://localhost:$(cat "$dir/in/port")
}

push() { # ARG...
	"$ctl" machine push --spool "$spool" --state "$dir/state" "$@" 2>"$dir/said"
}

# The numbers of samples that were taken, in the order in which they came.
taken() {
	local f

	for f in "$dir"/in/*.otlp; do /usr/bin/python3 tests/lib/otlp.py total "$f"; done | paste -sd' '
}

said() { # REGEX
	grep -qE -- "$1" "$dir/said" || { cat "$dir/said"; return 1; }
}

keep 1 2 3
receive
check "push sends a spool" push --once "$url"
prints "the receiver has each profile once, in order" "1 2 3" taken
check "push says how much it has sent" said 'sent 3 profiles of 6 samples, 0 dropped'
prints "requests are as OTLP has them" "1 200 POST /v1development/profiles application/x-protobuf gzip" \
	sh -c "head -n 1 $dir/in/log | cut -d' ' -f 1-6"
receive
push --once "$url"
prints "what was sent is not sent again" "" sh -c "cat $dir/in/log 2>/dev/null"
add 4 5
check "push sends what is new" push --once "$url"
prints "the receiver has what is new" "4 5" taken

keep 1 2 3 4
receive 503 wait 502 504 close
check "push tries again when the receiver fails for a time" push --once "$url"
prints "failures lose and double nothing" "1 2 3 4" taken
prints "push says once that the receiver fails, and once that it works" 2 grep -cE 'cannot send|are sent to .* again' "$dir/said"

keep 1 2 3
receive 200 half
check "push tries again when an answer is cut" push --once "$url"
prints "what was taken without an answer comes again" "1 2 2 3" taken
prints "a profile that comes twice has the same id" "1 2 1" \
	sh -c "for f in $dir/in/*.otlp; do /usr/bin/python3 tests/lib/otlp.py ids \$f; done | cut -d' ' -f 2 | uniq -c | awk '{ print \$1 }' | paste -sd' '"

keep 1 2 3 4
receive 400 partial big
push --once "$url"
check "push returns 3 when the receiver refuses profiles" test $? -eq 3
prints "what is refused is not tried again" "4 requests" sh -c "wc -l <$dir/in/log | sed 's/\$/ requests/'"
check "push says what was refused, without control characters" said 'machine-.* is dropped: .* refuses it: status 400: no .\[31mthanks'
check "push says what was rejected" said 'is dropped: .* has rejected 1 profiles in it: too old'
check "push refuses an answer that is too long" said 'is dropped: .*its answer has more than 4 MiB'
check "push counts what was dropped" said 'sent 1 profiles of 4 samples, 3 dropped'

keep 1 2 3
receive 200 hang
"$ctl" machine push --spool "$spool" --state "$dir/state" "$url" 2>"$dir/said" & pusher=$!
await "$pusher" grep -q '^2 hang' "$dir/in/log"
kill -KILL "$pusher"
wait "$pusher" 2>/dev/null
receive
check "push sends the rest after it was killed" push --once "$url"
prints "what was sent before it was killed is not sent again" "2 3" taken
keep 1 2 3
receive hang
"$ctl" machine push --spool "$spool" --state "$dir/state" "$url" 2>"$dir/said" & pusher=$!
await "$pusher" grep -q '^1 hang' "$dir/in/log"
kill -TERM "$pusher"
wait "$pusher"
check "a signal ends push within a request" test $? -eq 0

# The receiver is away; meanwhile the spool drops the oldest profile, and has a new one.
keep 1 2 3
kill "$receiver"
wait "$receiver" 2>/dev/null
"$ctl" machine push --spool "$spool" --state "$dir/state" --once "$url" 2>"$dir/said" & pusher=$!
await "$pusher" said 'cannot send to .* 3 profiles wait'
rm "$spool"/machine-20231114T2215*
add 4
kept_port=1 receive
wait "$pusher"
check "push returns 3 when the spool has dropped profiles" test $? -eq 3
prints "push sends what the spool still has" "1 3 4" taken
check "push counts what the spool has dropped" said '1 profiles were removed from .* before they were sent'

# While it is not running, the spool drops what was sent, and more.
keep 1 2
receive
push --once "$url"
rm "$spool"/*
add 7
push --once "$url"
check "push says that profiles may be missing after a restart" said 'profiles between .* and .* may have been removed'

keep 1
echo damaged >"$spool/machine-20231114T221321Z-60s.json.gz"
receive
push --once "$url"
prints "push drops a file that cannot be read, and sends the next" "1" taken

keep 1
receive
OTEL_EXPORTER_OTLP_ENDPOINT=$url/ OTEL_EXPORTER_OTLP_HEADERS='tenant=a%20b' OTEL_EXPORTER_OTLP_COMPRESSION=none push --once
prints "push obeys OpenTelemetry's variables" "/v1development/profiles application/x-protobuf undefined a b" \
	sh -c "cut -d' ' -f 4-6,8- $dir/in/log"
keep 1
receive
printf '# where to\nendpoint = %s/other # a path\nheader tenant: c d\n' "$url" >"$dir/push.conf"
check "push reads its options from a file" push --once --config "$dir/push.conf"
prints "the file names path and headers" "/other c d" sh -c "cut -d' ' -f 4,8- $dir/in/log"
echo 'endpont x' >"$dir/push.conf"
prints "push refuses an unknown option of the file" \
	$'profilctl: endpont: not an option of \'profilctl machine push\'\nprofilctl: '"$dir/push.conf:1: invalid option" \
	"$ctl" machine push --config "$dir/push.conf"
prints "push needs a receiver" "profilctl: machine push: needs a URL: 'profilctl machine push http://HOST:4318', or OTEL_EXPORTER_OTLP_ENDPOINT" \
	"$ctl" machine push --spool "$spool" --state "$dir/state"
prints "push does not show a password" 0 sh -c "'$ctl' machine push --once --spool '$spool' --state '$dir/state' \
	http://user:secret@localhost:1 -d 1 2>&1 | grep -c secret"

grpc=grpc
keep 1 2 3 4
receive 14 wait close half
check "push calls a receiver of gRPC, again where it fails for a time" push --once "$url"
prints "each call is taken, and one without a status comes again" "1 1 2 3 4" taken
prints "calls are as gRPC has them" \
	"POST /opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export application/grpc gzip/true" \
	sh -c "tail -n 1 $dir/in/log | cut -d' ' -f 3-6"
keep 1 2 3
receive 3 partial 8
push --once "$url"
check "push returns 3 when a receiver of gRPC refuses profiles" test $? -eq 3
check "push says with which status" said 'is dropped: .* refuses it: gRPC status 3 INVALID_ARGUMENT: no thanks'
check "push reads the answer of gRPC" said 'is dropped: .* has rejected 1 profiles in it: too old'
check "what is too large for the receiver is dropped" said 'gRPC status 8 RESOURCE_EXHAUSTED'
keep 1
receive
OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_COMPRESSION=none push --once "http://${url#*://}/"
prints "push obeys OpenTelemetry's variable of the protocol" "undefined/false 1" \
	sh -c "echo \$(cut -d' ' -f 6 $dir/in/log) \$(/usr/bin/python3 tests/lib/otlp.py total $dir/in/0001.otlp)"
keep 1
"$ctl" machine push --spool "$spool" --state "$dir/state" --once -d 1 "grpcs://${url#*://}" 2>"$dir/said"
check "grpcs asks for TLS" said 'https://localhost'

# A minute with more stacks than it may take: 300 callers, each of ten functions with one sample each.
grpc='' kept_port=''
rm -rf "$spool" "$dir/state"
mkdir "$spool"
python3 -c '
import gzip, json, sys
frames = [["main", 0, 16]] + [[f"caller_{i}", 0, 64 * (i + 1)] for i in range(300)]
nodes = [[0, 0, 0, 16, 0]] + [[1, i, 0, 64 * i, 0] for i in range(1, 301)]
for i in range(3000):
    frames.append([f"callee_{i}_of_{i * 7919 % 3000}", 0, 65536 + 64 * i])
    nodes.append([2 + i // 10, 301 + i, 0, 65536 + 64 * i, 1])
end = {"end": "whole", "samples": 3000, "without_frame": 0}
p = {"schema": "profil/1", "command": "the whole machine", "pid": 0, "started": 1700000000, "tick_ns": 10000000,
     "duration_ns": 60 * 10**9, "cpu_ns": 0, "command_status": 0,
     "samples": {"total": 3000, "binned": 3000, "unmatched": 0, "lost": 0},
     "functions": [{"name": f[0], "object": "/bin/x", "samples": 1, "offset": f[2], "size": 64, "named": True} for f in frames[301:]],
     "objects": [{"path": "/bin/x", "build_id": "00ff"}], "places": [[0, f[2], 1, 1] for f in frames[301:]],
     "stacks": {"samples": 3000, "without": 0, "ends": [end], "cuts": [], "frames": frames, "nodes": nodes}}
with gzip.open(sys.argv[1], "wt") as f: json.dump(p, f)' "$spool/machine-20231114T221320Z-60s.json.gz"
bytes_sent() { /usr/bin/python3 -c 'import glob, sys, zlib; print(sum(len(zlib.compress(open(f, "rb").read())) for f in glob.glob(sys.argv[1] + "/in/*.otlp")))' "$dir"; }
callers() { /usr/bin/python3 tests/lib/otlp.py stacks "$dir"/in/*.otlp | grep -c '^10 main;caller_[0-9]*$'; }
receive
push --once "$url"
check "a minute with 3000 stacks is sent as it is" test "$(taken) $(callers)" = "3000 0"
check "which takes more than its part of 20 MiB a day" test "$(bytes_sent)" -gt $((20 * 1024 * 1024 / 1440))
rm -rf "$dir/state"
receive
push --once --max-daily 20M "$url"
check "with --max-daily 20M it takes no more" test "$(bytes_sent)" -le $((20 * 1024 * 1024 / 1440))
check "its samples are all there, the light stacks in their callers" test "$(taken) $(callers)" = "3000 300"
check "push says which stacks are left" said 'less than 2 samples are counted in their callers'
finish
