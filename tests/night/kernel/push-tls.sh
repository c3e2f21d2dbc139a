#!/bin/bash
# push-tls.sh - machine push over HTTPS: a private authority, a foreign one, another name, and a client's certificate
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

needs node "push over HTTPS"
needs openssl "push over HTTPS"
ctl=$BUILD/profilctl
spool=$dir/spool
in=$dir/in
receiver=
trap 'test -z "$receiver" || kill "$receiver" 2>/dev/null; lib_end' EXIT
unset "${!OTEL_@}" http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY
mkdir "$spool" "$in"

authority() { # NAME
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$1" -keyout "$dir/$1.key" -out "$dir/$1.pem" 2>/dev/null
}

# A certificate of AUTHORITY for HOST becomes the receiver's.
certify() { # AUTHORITY HOST
	openssl req -newkey rsa:2048 -nodes -subj "/CN=$2" -keyout "$in/server.key" -out "$dir/request" 2>/dev/null &&
		openssl x509 -req -days 2 -in "$dir/request" -CA "$dir/$1.pem" -CAkey "$dir/$1.key" -CAcreateserial \
			-extfile <(echo "subjectAltName=DNS:$2") -out "$in/server.pem" 2>/dev/null
}

receive() {
	test -z "$receiver" || { kill "$receiver"; wait "$receiver" 2>/dev/null; }
	rm -f "$in"/{ready,port,log} "$in"/*.otlp
	tests/lib/otlp_receiver.js "$in" &
	receiver=$!
	await "$receiver" test -e "$in/ready" || fail "receiver" "$(cat "$dir/await")"
	url=https://localhost:$(cat "$in/port")
}

# Pushes until the receiver is refused with WORDS; nothing is taken, and nothing is dropped.
is_refused() { # WORDS
	local pusher got=0

	rm -rf "$dir/state"
	: >"$dir/said" # of the last one
	"$ctl" machine push --spool "$spool" --state "$dir/state" "$url" 2>>"$dir/said" &
	pusher=$!
	await "$pusher" grep -q 'cannot send' "$dir/said"
	grep -qF -- "$1" "$dir/said" || { cat "$dir/said"; got=1; }
	kill "$pusher"
	wait "$pusher" 2>/dev/null
	test ! -e "$in/log" || { cat "$in/log"; got=1; }
	! grep dropped: "$dir/said" && return "$got"
}

sample_profile "$dir/one"
jq -c '.started = 1700000000 | .duration_ns = 60e9' "$dir/one" | gzip >"$spool/machine-20231114T221320Z-60s.json.gz"
check "openssl makes an authority, another one and a certificate" eval "authority ours && authority foreign && certify ours localhost"
receive
check "a receiver of an authority that is not known is refused" is_refused "certificate"
check "the message names the variable for a private authority" grep -q OTEL_EXPORTER_OTLP_CERTIFICATE "$dir/said"
export OTEL_EXPORTER_OTLP_CERTIFICATE=$dir/ours.pem
rm -rf "$dir/state"
check "a receiver of the named authority takes the profiles" "$ctl" machine push --spool "$spool" --state "$dir/state" --once "$url"
check "over HTTPS it has one request" test "$(wc -l <"$in/log")" = 1
export OTEL_EXPORTER_OTLP_CERTIFICATE=$dir/foreign.pem
receive
check "a receiver of another authority than the named one is refused" is_refused "certificate"
export OTEL_EXPORTER_OTLP_CERTIFICATE=$dir/ours.pem
certify ours elsewhere.example
receive
check "a certificate for another host is refused" is_refused "host name"
export OTEL_EXPORTER_OTLP_CERTIFICATE=$dir/nowhere.pem
check "a file of an authority that is missing is named" is_refused "nowhere.pem"
finish
