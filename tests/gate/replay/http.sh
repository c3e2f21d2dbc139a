#!/bin/bash
# http.sh - profil-http negotiates formats and content codings, and answers conditional requests
# shellcheck source=tests/lib/http.sh
. "$(dirname "$0")/../../lib/http.sh"

needs curl "profil-http negotiates"
reader=$(id -gn)
daemon_start
# shellcheck disable=SC2119 # it has no further options
http_start

# The value of a header of the answer.
header_of() { # NAME PATH CURL_OPTION...
	get "$2" -o /dev/null -D - "${@:3}" | tr -d '\r' | sed -n "s/^$1: //Ip"
}

has_header() { # VALUE NAME PATH CURL_OPTION...
	local got

	got=$(header_of "${@:2}")
	test "$got" = "$1" || { echo "$2: $got"; return 1; }
}

for path in /flame.js /page.css /page.js /spool.js /debug/pprof/; do
	tag=$(header_of ETag "$path")
	check "$path has an entity tag" test "$tag"
	check "$path has not changed since it was sent" has_status 304 "$path" -H "If-None-Match: $tag"
	check "$path has not changed for HEAD" has_status 304 "$path" -I -H "If-None-Match: \"other\", W/$tag"
	check "a 304 of $path has its tag" has_header "$tag" ETag "$path" -H "If-None-Match: $tag"
	check "a 304 of $path has no body" test -z "$(get "$path" -H "If-None-Match: $tag")"
	check "$path is sent for another tag" has_status 200 "$path" -H 'If-None-Match: "other"'
	check "$path is not sent if another one is wanted" has_status 412 "$path" -H 'If-Match: "other"'
	check "$path is sent compressed to a reader that takes it" has_header gzip Content-Encoding "$path" -H 'Accept-Encoding: gzip, br'
	check "the compressed $path has a tag of its own" test "$(header_of ETag "$path" -H 'Accept-Encoding: gzip')" != "$tag"
	get "$path" >"$dir/plain"
	get "$path" -H 'Accept-Encoding: gzip' | gzip -d >"$dir/unpacked"
	check "the compressed $path has the same contents" cmp "$dir/plain" "$dir/unpacked"
done
check "caches know what the answer depends on" has_header "Accept, Accept-Encoding" Vary /page.js
check "no content coding is used unless it is asked for" has_header "" Content-Encoding /page.js
check "gzip;q=0 excludes it" has_header "" Content-Encoding /page.js -H 'Accept-Encoding: gzip;q=0, *'
check "a reader that takes no coding that there is gets 406" has_status 406 /page.js -H 'Accept-Encoding: br, *;q=0'
check "what changes has no entity tag" has_header "" ETag /metrics
check "and is not to be stored" has_header no-store Cache-Control /metrics

check "/metrics is Prometheus's format unless OpenMetrics is asked for" \
	has_header "text/plain; version=0.0.4; charset=utf-8" Content-Type /metrics
check "/metrics is OpenMetrics for a reader that asks for it" \
	has_header "application/openmetrics-text; version=1.0.0; charset=utf-8" Content-Type /metrics -H 'Accept: application/openmetrics-text'
check "/metrics has no JSON" has_status 406 /metrics -H 'Accept: application/json'
get /metrics -H 'Accept: text/plain;version=0.0.4' >"$dir/metrics"
reads_by_night promtool "promtool accepts /metrics" "" promtool check metrics <"$dir/metrics"
daemon_stop
finish
