#!/bin/bash
# units.sh - the other services do their work with the system calls that their units leave them, root's with the capabilities
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

needs systemd-analyze "the services work under their units"
needs node "the services work under their units"
needs curl "the services work under their units"
daemon_start
mkdir "$dir/spool" "$dir/received"
declare -A pid
busy='' receiver=''
trap 'kill "${pid[@]}" $busy $receiver 2>/dev/null; wait "${pid[@]}"; lib_end' EXIT

under_unit() { # UNIT COMMAND...
	local unit=systemd/profil-$1.service caps=+all

	grep -qE '^(Dynamic)?User=' "$unit" || caps=-all$(sed -n 's/^CapabilityBoundingSet=//p' "$unit" |
		tr '[:upper:]' '[:lower:]' | sed 's/cap_/,+/g; s/ //g')
	exec setpriv --no-new-privs "--bounding-set=$caps" tests/lib/unit_filter.py "$unit" "${@:2}"
}

begin() { # UNIT COMMAND...
	under_unit "$@" >"$dir/$1.log" 2>&1 &
	pid[$1]=$!
}

has_feeder() {
	test "$("$BUILD/profilctl" machine status --json | jq .feeder)" != 0
}

is_answered() { # PATH
	test "$(curl -s -o "$dir/answer" -w '%{http_code}' --unix-socket "$dir/http.sock" "http://x$1")" = 200
}

has_profiles() {
	compgen -G "$dir/spool/*.json.gz"
}

pushes() {
	(under_unit push "$BUILD/profilctl" machine push --once --spool "$dir/spool" --state "$dir/state" \
		"http://127.0.0.1:$(cat "$dir/received/port")") && compgen -G "$dir/received/*.otlp"
}

dd if=/dev/zero of=/dev/null bs=64k 2>/dev/null & # the machine has samples whatever else runs
busy=$!
"$BUILD/profilctl" machine on -g 2>/dev/null
begin feed "$BUILD/profilctl" machine feed
begin spool "$BUILD/profilctl" machine spool -i 1 "$dir/spool"
begin http "$BUILD/profil-http" --listen "$dir/http.sock" --spool "$dir/spool" --socket "$PROFIL_SOCKET"
check "profil-feed.service feeds the machine's profile" await "${pid[feed]}" has_feeder
check "profil-http.service answers with a profile" await "${pid[http]}" is_answered '/debug/pprof/profile?seconds=1'
check "profil-spool.service keeps profiles" await "${pid[spool]}" has_profiles
tests/lib/otlp_receiver.js "$dir/received" 200 &
receiver=$!
await "$receiver" test -e "$dir/received/ready"
check "profil-push.service sends them" pushes
finish
