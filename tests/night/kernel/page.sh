#!/bin/bash
# page.sh - profil-http's page with a day's spool in a browser: how fast it is, by keyboard alone, at three widths
#
# usage: PICTURES=DIR/NAME tests/run.sh kernel:tests/night/kernel/page.sh    leaves pictures of the page as well
# shellcheck source=tests/lib/http.sh
. "$(dirname "$0")/../../lib/http.sh"

needs chromium "the page works in a browser"
reader=$(id -gn)
real=$dir/real spool=$dir/spool
mkdir "$real" "$spool"

# Profiles of this machine, which the tests keep busy, stand for each minute of a day in turn.
fill() {
	local i files now

	"$BUILD/profilctl" machine spool -i 2 -d 12 "$real" 2>"$dir/said" || { cat "$dir/said"; return 1; }
	files=("$real"/*.json.gz)
	now=$(($(date +%s) / 60 * 60))
	for ((i = 0; i < 1440; i++)); do
		ln "${files[i % ${#files[@]}]}" "$spool/machine-$(date -u -d "@$((now - 60 * (1440 - i)))" +%Y%m%dT%H%M%SZ)-60s.json.gz"
	done
}

daemon_start
for n in 1 2; do
	bash -c 'while :; do ls -l /usr/bin >/dev/null; done' &
	started+=("$!")
done
check "the machine's profile fills a day's spool" fill
kill "${started[@]}"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
http_start --spool "$spool" --listen "127.0.0.1:$port"
quiet='' # for what takes a time
! python3 tests/lib/verdict.py quiet "${PROFIL_TEST_QUIET_S:-600}" || quiet=1
timeout 900 python3 tests/lib/http/page.py "http://127.0.0.1:$port/" ${PICTURES:+"$PICTURES"} >"$dir/page" 2>&1
while read -r verdict what; do
	case $verdict in
	ok) ok "$what" ;;
	FAIL) fail "${what%%: *}" "${what#*: }" ;;
	SLOW) if test "$quiet"; then fail "${what%%: *}" "${what#*: }"; else
		no_verdict "${what%%: *}" "the machine did not become quiet: ${what#*: }"
	fi ;;
	*) fail "the page works in a browser" "$verdict $what" ;;
	esac
done <"$dir/page"
daemon_stop
finish
