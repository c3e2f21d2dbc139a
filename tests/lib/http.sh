#!/bin/bash
# http.sh - what the tests of profil-http share
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# shellcheck disable=SC2034 # some are for the scripts that source this
http=
started=()
hung= # the descriptor of a FUSE server
# shellcheck disable=SC2154 # dir and daemon are lib.sh's
trap 'test -z "$hung" || unhang; for p in "${started[@]}"; do kill "$p" 2>/dev/null; done; lib_end' EXIT
sock=$dir/http.sock
# shellcheck disable=SC2034
client=$PWD/tests/lib/http/client.py
# shellcheck disable=SC2034
other=65534 # a user without the right to read
reader=daemon # the group whose members may read

http_start() { # ARGS...
	notify_listen http-notify
	NOTIFY_SOCKET=$dir/http-notify "$BUILD/profil-http" --socket "$PROFIL_SOCKET" --group "$reader" \
		--listen "$sock" "$@" 2>>"$dir/http-log" &
	http=$!
	started+=("$http")
	if ! await "$http" test -e "$dir/http-notify.ready"; then
		fail "profil-http $*" "not ready: $(cat "$dir/http-log")"
		finish
	fi
	notified=
}

get() { # PATH CURL_OPTION...
	curl -sS --max-time 30 --unix-socket "$sock" "http://localhost$1" "${@:2}"
}

status_of() { # PATH CURL_OPTION...
	get "$1" -o /dev/null -w '%{http_code}' "${@:2}"
}

has_status() { # STATUS PATH CURL_OPTION...
	local got

	got=$(status_of "${@:2}")
	test "$got" = "$1" || { echo "status $got"; return 1; }
}

# CPU time of all threads, in microseconds.
cpu_us() { # PID
	awk '{ ns += $1 } END { printf "%d\n", ns / 1000 }' "/proc/$1"/task/*/schedstat
}

build_checker() {
	mkdir -p "$dir/go"
	cp tests/lib/http/checkprofile.go "$dir/go/"
	(cd "$dir/go" && GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE="$dir/gocache" GOFLAGS='' \
		go build -o "$dir/checkprofile" checkprofile.go)
}
