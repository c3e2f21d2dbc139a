#!/bin/bash
# http-stacks.sh - profil-http serves the stacks of the machine's profile, and as many samples as without
# shellcheck source=tests/lib/http.sh
. "$(dirname "$0")/../../lib/http.sh"

ctl=$BUILD/profilctl
if ! test -x "$BUILD/profil-http"; then
	lacks "profil-http was built" "libmicrohttpd"
	finish
fi
prog=$dir/calls
"${CC:-gcc}" -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -o "$prog" -x c - <<'END' || exit 1
static volatile unsigned long spun;
__attribute__((noipa)) static void hot(void) { for (int i = 0; i < 100000; i++) spun++; }
__attribute__((noipa)) static void outer(void) { hot(); spun++; }
int main(void) { for (;;) outer(); }
END
"$prog" &
busy=$!
started+=("$busy")

calls() { # PATH
	get "$1" --fail | grep -Eq ';main;outer;hot [0-9]'
}

snapshots() { # NAME PATH
	get "$2" --fail -o "$dir/$1" -D - | tr -d '\r' | sed -n 's/^Profil-Snapshots: //p'
}

# The two answers are of the same samples only if they share both snapshots.
same_sum() {
	local stacks places

	snapshots stacks '/v1development/profiles?seconds=1&by=stack' >"$dir/stacks.of" &
	places=$(snapshots places '/v1development/profiles?seconds=1&by=place')
	wait $!
	test -n "$places" && test "$places" = "$(cat "$dir/stacks.of")" || return
	stacks=$(/usr/bin/python3 tests/lib/otlp.py total "$dir/stacks")
	places=$(/usr/bin/python3 tests/lib/otlp.py total "$dir/places")
	echo "$stacks in stacks, $places in places" >"$dir/sums"
	test "$stacks" -gt 0 && { test "$stacks" -eq "$places" || touch "$dir/differ"; }
}

has_places() {
	get '/debug/pprof/folded?seconds=1' --fail >"$dir/folded" && grep -q ' [0-9]' "$dir/folded"
}

daemon_start --machine=199 --ephemeral
http_start --spool "$dir/no-spool"
check "a profile without stacks has functions" await "$busy" has_places
check "its stacks are not found, and how to have them is said" has_status 404 '/debug/pprof/stacks?seconds=1'
get '/debug/pprof/stacks?seconds=1' >"$dir/said"
check "with the command that turns them on" grep -q 'machine on -g' "$dir/said"
"$ctl" machine on -g 2>>"$dir/log"
"$ctl" machine feed 2>>"$dir/log" &
started+=("$!")
check "folded stacks are whole" await "$busy" calls '/debug/pprof/folded?seconds=1'
check "stacks and places of the same time are read" await "$busy" same_sum
check "they have the same number of samples" sh -c "! test -e '$dir/differ' || { cat '$dir/sums'; false; }"
get / --fail >"$dir/page"
check "without a spool the page has the flame graph" grep -q 'there is no spool' "$dir/page"
check "with the functions of the program" grep -q '"hot"' "$dir/page"
check "another user gets none of it" test "$(setpriv --reuid="$other" --clear-groups curl -s --unix-socket "$sock" -o "$dir/refused" -w '%{http_code}' 'http://localhost/debug/pprof/folded?seconds=1')" != 200
kill "$busy"
kill "$http"
wait "$http"
check "profil-http ends with 0" test $? = 0
daemon_stop
finish
