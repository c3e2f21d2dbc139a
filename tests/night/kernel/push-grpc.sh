#!/bin/bash
# push-grpc.sh - machine push to a server of gRPC's own library, from npm: each profile of a spool once, in order
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

needs node "push over gRPC"
ctl=$BUILD/profilctl
receiver=
trap 'test -z "$receiver" || kill "$receiver" 2>/dev/null; lib_end' EXIT
unset "${!OTEL_@}" http_proxy HTTP_PROXY all_proxy ALL_PROXY

if ! online npm install --prefix "$dir" @grpc/grpc-js @grpc/proto-loader >"$dir/npm" 2>&1; then
	skip "push over gRPC" "npm has no @grpc/grpc-js: $(tail -1 "$dir/npm")"
	finish
fi
mkdir "$dir/in" "$dir/spool"
daemon_start --machine
check "there is a spool" "$ctl" machine spool -i 1 -d 5.5 "$dir/spool"
daemon_stop
NODE_PATH=$dir/node_modules tests/lib/grpc_receiver.js "$dir/in" 0 14 0 4 &
receiver=$!
await "$receiver" test -e "$dir/in/port" || fail "the receiver listens" "$(cat "$dir/await")"
check "push sends it" "$ctl" machine push --once --spool "$dir/spool" --state "$dir/state" "grpc://localhost:$(cat "$dir/in/port")"
totals() {
	local f

	for f in "$dir"/spool/*.json.gz; do zcat "$f" | jq '.samples.total - .samples.lost - .samples.unmatched'; done
}
check "the server has decoded each profile once, in order, with its total" diff <(totals) "$dir/in/taken"
finish
