#!/bin/bash
# http-soak.sh - profil-http under load: every profile is valid, and consecutive ones do not overlap
#
# PROFIL_TEST_SOAK_S: seconds; 30 unless given, 3600 by night.
# PROFIL_TEST_SOAK_PAUSE_S: pause of the load between two rounds, for a machine that is used meanwhile.
# shellcheck disable=SC2016 # what is in quotes is for awk
# shellcheck source=tests/lib/http.sh
. "$(dirname "$0")/../../lib/http.sh"

seconds=${PROFIL_TEST_SOAK_S:-30}

if ! command -v go >/dev/null || ! test -d /usr/share/gocode/src/github.com/google/pprof; then
	lacks "profil-http serves readers under load" "golang-go or golang-github-google-pprof-dev"
	finish
fi

# New programs, files and code all the time.
load() {
	local n=0

	while :; do
		cp /bin/gzip "$dir/gzip.$((n++ % 10))"
		"$dir/gzip.$((n % 10))" -c "$BUILD/profilctl" >/dev/null
		python3 -c 'import json; [json.dumps(list(range(1000))) for _ in range(200)]'
		sleep "${PROFIL_TEST_SOAK_PAUSE_S:-0}"
	done 2>/dev/null
}

# One profile after the other, of 1 to 3 seconds.
read_profiles() { # NAME END
	local n=0

	while test "$SECONDS" -lt "$2"; do
		curl -sSf --max-time 30 --unix-socket "$sock" -o "$dir/$1.$((n++)).pb.gz" \
			"http://localhost/debug/pprof/profile?seconds=$((n % 3 + 1))" || return
	done
}

check "the checker builds with google/pprof's profile package" build_checker
daemon_start --machine
"$BUILD/profil-http" --socket "$PROFIL_SOCKET" --listen "$sock" 2>"$dir/http-log" &
started+=($!)
http=$!
until curl -sS --unix-socket "$sock" -o "$dir/first" http://localhost/metrics 2>/dev/null; do
	alive "$http" || { fail "profil-http serves readers under load" "$(cat "$dir/http-log")"; finish; }
done
load &
started+=($!)
readers=() began=$SECONDS
: >"$dir/errors"
for name in a b c; do
	read_profiles "$name" $((SECONDS + seconds)) 2>>"$dir/errors" &
	readers+=($!)
done
check "consecutive profiles are answered for $seconds s" \
	eval '"$client" soak "$sock" "$seconds" "$dir/chain." >"$dir/list"'
failures=0
for pid in "${readers[@]}"; do wait "$pid" || failures=$((failures + 1)); done
took=$((SECONDS - began))
check "every request is answered for $seconds s: $(cat "$dir/errors")" test "$failures" -eq 0
# A request that comes more than 100 ms late leaves a gap. Where one of ten does so, none of eight sums of two profiles
# is without a gap once in 34,000 times.
said=$("$dir/checkprofile" -soak "$dir/list" 10 2>&1)
status=$?
printf '# %s\n' "$said"
check "consecutive profiles add up, place by place, to the difference of the totals" eval "echo '$said'; test $status -eq 0"
profiles=("$dir"/[abc].*.pb.gz "$dir"/chain.*)
check "readers get a profile at least every 2 s: ${#profiles[@]}" test "${#profiles[@]}" -ge $((seconds / 2))
check "every profile passes CheckValid of google/pprof" "$dir/checkprofile" "${profiles[@]}"
# One reader's profiles do not overlap: together they have no more CPU time than there was.
"$dir/checkprofile" "$dir"/a.*.pb.gz >"$dir/sums"
cpus=$(nproc)
check "the profiles of one reader have at most the CPU time of $cpus CPUs" \
	awk -v most=$(((took + 1) * cpus)) '{ ns += $3 } END { print ns; exit !(ns > 0 && ns <= 1.1e9 * most) }' "$dir/sums"
daemon_stop
finish
