#!/bin/bash
# http.sh - profil-http over the real machine profile: pprof, Prometheus, and hostile readers
#
# usage: tests/night/kernel/http.sh
# shellcheck source=tests/lib/http.sh
. "$(dirname "$0")/../../lib/http.sh"

# The busy process, which has used half a second of CPU time, has 99 samples in the total. In a profile of 2 s
# it has 398, or fewer than 10 where the machine gives it less than 3 % of a CPU.
profiles() {
	get '/debug/pprof/profile?seconds=2' -o "$dir/one" || return
	get '/debug/pprof/profile?seconds=2&by=unit' -o "$dir/by" || return
	until test "$(cpu_us "$busy")" -ge 500000; do alive "$busy" || return; done
	fresh_snapshot
	get /debug/pprof/total -o "$dir/total" || return
	"$dir/checkprofile" "$dir/one" "$dir/by" "$dir/total" >"$dir/sums" || return
	awk '$2 < (NR < 3 ? 10 : 90) { print; bad = 1 } END { exit bad }' "$dir/sums"
}

# The samples of OTLP are those that a reader made by protoc finds, and the rules of its receivers hold.
otlp() {
	get '/v1development/profiles?seconds=2' --fail -o "$dir/otlp" || return
	test "$(/usr/bin/python3 tests/lib/otlp.py total "$dir/otlp")" -gt 0 &&
		/usr/bin/python3 tests/lib/otlp.py types "$dir/otlp" | grep -q 'samples count cpu nanoseconds [1-9]'
}

# How many snapshots profil-http has taken so far.
snapshots() {
	get /debug/pprof/total -o "$dir/total" -D - | tr -d '\r' | sed -n 's/^Profil-Snapshots: .*-//p'
}

# Waits until profil-http has taken a snapshot that is younger than this call. Answers share one for 100 ms.
fresh_snapshot() {
	local before now

	before=$(snapshots)
	until now=$(snapshots) && test "$now" -gt "$before"; do alive "$http" || return; done
}

test_pprof() {
	local top

	if ! command -v go >/dev/null || ! test -d /usr/share/gocode/src/github.com/google/pprof; then
		lacks "go tool pprof reads the profiles" "golang-go or golang-github-google-pprof-dev"
		return
	fi
	check "the checker builds with google/pprof's profile package" build_checker
	check "profiles are valid, with dense ids and a mapping for each location" profiles
	check "OTLP is valid for its receivers" otlp
	top=$(PPROF_TMPDIR=$dir HOME=$dir go tool pprof -top "http://127.0.0.1:$port/debug/pprof/profile?seconds=1" 2>&1)
	if [[ $top == *'Type: cpu'*'Duration: '*"flat%"*bash* ]]; then
		ok "go tool pprof reads a profile by TCP and shows the busy function"
	else
		fail "go tool pprof reads a profile by TCP and shows the busy function" "$top"
	fi
}

# profilctl's totals before and after bound profil-http's total between the two.
test_against_profilctl() {
	local before between after total='.total'

	before=$("$BUILD/profilctl" machine status --json | jq "$total")
	fresh_snapshot
	between=$(get /metrics | awk '/^profil_samples_total/ { n += $2 } END { print n }')
	after=$("$BUILD/profilctl" machine status --json | jq "$total")
	if ((0 < before && before <= between && between <= after)); then
		ok "profil-http has as many samples as 'profilctl machine'"
	else
		fail "profil-http has as many samples as 'profilctl machine'" "$before, $between, $after"
	fi
}

# The series of each family add up to the CPU time of all placed samples. The sums by unit are read a moment
# before or after the places: they are bounded by the places of the snapshots before and after this one. A CPU may
# have counted one sample by halves.
series_add_up() {
	get /metrics -o "$dir/metrics.before" && fresh_snapshot || return
	get /metrics -H 'Accept: application/openmetrics-text' -D "$dir/head" -o "$dir/metrics" && fresh_snapshot || return
	get /metrics -o "$dir/metrics.after" || return
	grep -qi '^content-type: application/openmetrics-text; version=1.0.0; charset=utf-8' "$dir/head" || {
		cat "$dir/head"
		return 1
	}
	test "$(tail -n 1 "$dir/metrics")" = '# EOF' || return
	awk -v cpus="$(nproc)" '
		FNR == 1 { file++ }
		/^profil_samples_total.outcome="placed"/ { placed[file] = $2 }
		/^profil_sample_period_seconds / { period = $2 }
		file == 2 && /^profil_unit_cpu_seconds_total/ { unit += $NF }
		file == 2 && /^profil_image_cpu_seconds_total/ { image += $NF; n++ }
		END {
			print placed[1], placed[2], placed[3], period, unit, image, n
			off = image - placed[2] * period
			exit !placed[1] || n < 2 || n > 101 || off < -0.0001 || off > 0.0001 ||
				unit < (placed[1] - cpus) * period || unit > (placed[3] + cpus) * period
		}' "$dir/metrics.before" "$dir/metrics" "$dir/metrics.after"
}

scrape() {
	local query="http://127.0.0.1:$1/api/v1/query" began=$SECONDS got

	until got=$(curl -s --max-time 20 "$query" --data-urlencode 'query=profil_samples_total{outcome="placed"}' |
		jq -r '.data.result[0].value[1]') && [[ $got =~ ^[0-9]+$ ]]; do
		if ! alive "$prometheus" || test $((SECONDS - began)) -ge 120; then
			cat "$dir/prometheus-log"
			return 1
		fi
		sleep 0.2
	done
	# A later scrape may take longer than its interval of 1 s.
	curl -s --max-time 20 "$query" --data-urlencode 'query=max_over_time(up{job="profil"}[5m])' |
		jq -e '.data.result[0].value[1] == "1"'
}

test_prometheus() {
	local at

	check "metrics are OpenMetrics, and each family adds up to all samples" series_add_up
	get /metrics -D "$dir/head" -o "$dir/classic"
	check "a reader that does not ask for OpenMetrics gets Prometheus's format" grep -qi \
		'^content-type: text/plain; version=0.0.4; charset=utf-8' "$dir/head"
	if command -v promtool >/dev/null; then
		check "promtool accepts the metrics" promtool check metrics <"$dir/classic"
	else
		lacks "promtool accepts the metrics" "promtool"
	fi
	check "both formats have the same series" cmp <(sed '/^#/d; s/ [0-9.]*$//' "$dir/classic") <(sed '/^#/d; s/ [0-9.]*$//' "$dir/metrics")
	check "a reader that takes neither format gets 406" has_status 406 /metrics -H 'Accept: image/png'
	if ! command -v prometheus >/dev/null; then
		lacks "Prometheus scrapes the metrics" "prometheus"
		return
	fi
	at=$(free_port)
	# The configuration of profil-http(8), with this test's address and a shorter interval.
	awk '/^scrape_configs:/ { on = 1 } /^\.Ed/ && on { exit } on' src/profil-http/profil-http.8 |
		sed "s/127.0.0.1:6060/127.0.0.1:$port/; s/scrape_interval: .*/scrape_interval: 1s/" >"$dir/prometheus.yml"
	prometheus --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/tsdb" \
		--web.listen-address="127.0.0.1:$at" >"$dir/prometheus-log" 2>&1 &
	prometheus=$!
	started+=("$prometheus")
	check "Prometheus scrapes the metrics with the manual's configuration" scrape "$at"
	kill "$prometheus"
	wait "$prometheus" 2>/dev/null
}

# Starts N readers of a profile of 5 seconds; prints profil-http's CPU time in microseconds. What they got is in
# $dir/crowd.
cost_of() { # N
	local before

	before=$(cpu_us "$http")
	timeout 100 "$client" crowd "$sock" "$1" '/debug/pprof/profile?seconds=5' >"$dir/crowd" || return
	echo $(($(cpu_us "$http") - before))
}

# Those hundred that begin with one snapshot get the same bytes, encoded once. One reader costs some 10 ms, partly
# for new files and cold caches: the ratio was 0.4 to 1.7 in eight runs on two CPUs, and would be a hundred if each
# were encoded by itself. A snapshot is shared for 100 ms: a machine that takes longer to serve all hundred takes
# several.
test_cost() {
	local one many answers ranges differing late what="a hundred concurrent readers cost at most ten times one reader"

	one=$(cost_of 1)
	many=$(cost_of 100)
	read -r answers ranges differing late <"$dir/crowd"
	printf '# one reader %s us, a hundred %s us, of %s ranges\n' "$one" "$many" "$ranges"
	if ((one > 0 && many > 0 && many <= 10 * one * ranges)); then
		ok "$what"
	else
		fail "$what" "$one us, $many us, $ranges ranges"
	fi
	what="a hundred concurrent readers get the same profile"
	if ((answers == 100 && differing == 0 && ranges <= late / 100 + 2)); then
		ok "$what"
	else
		fail "$what" "$answers answers of $ranges ranges, $differing of which differ, $late ms after the 5 s"
	fi
}

as_other() { # GROUP COMMAND...
	setpriv --reuid "$other" --regid "$1" --clear-groups -- "${@:2}"
}

refused() { # PATH
	local got

	got=$(as_other "$other" curl -sS -i --max-time 20 --unix-socket "$sock" "http://localhost$1") || return
	if [[ $got != 'HTTP/1.1 403'* ]] || test "$(sed '1,/^\r$/d' <<<"$got" | wc -c)" -ge 100; then
		echo "$got"
		return 1
	fi
}

test_rights() {
	chmod 711 "$dir"
	if as_other "$other" curl -s --unix-socket "$sock" http://localhost/metrics >/dev/null; then
		fail "the socket's mode excludes other users" "it does not"
	elif test "$(stat -c '%a %G' "$sock")" = "660 $reader"; then
		ok "the socket's mode excludes other users"
	else
		fail "the socket's mode excludes other users" "$(stat -c '%a %G' "$sock")"
	fi
	check "a member of the group may read" as_other "$reader" \
		curl -sS --fail --unix-socket "$sock" http://localhost/metrics -o /dev/null
	chmod 666 "$sock"
	for path in / /metrics '/debug/pprof/profile?seconds=1' '/?by=unit' /nowhere; do
		check "a user without the right gets 403 and no data from $path" refused "$path"
	done
	chmod 660 "$sock"
}

refuses() { # WORDS ARGS...
	local said

	local run=("$BUILD/profil-http" --socket "$PROFIL_SOCKET")

	if test "$2" = --inherited; then
		run=(python3 tests/lib/http/activate.py 0.0.0.0 "${run[@]}")
	else
		run+=("${@:2}")
	fi
	said=$(timeout 60 "${run[@]}" 2>&1) && { echo "it runs"; return 1; }
	[[ $said == *"$1"* ]] || { echo "$said"; return 1; }
}

test_tcp() {
	check "an IPv4 address beyond loopback needs --allow-remote" refuses 'add --allow-remote' --listen 0.0.0.0:0
	check "an IPv6 address beyond loopback needs --allow-remote" refuses 'add --allow-remote' --listen '[::]:0'
	check "an inherited socket beyond loopback needs --allow-remote" refuses 'add --allow-remote' --inherited
	check "a foreign Host header is refused on loopback" has_status_tcp 403 -H 'Host: evil.example'
	check "the Host header localhost is accepted on loopback" has_status_tcp 200 -H 'Host: localhost:1'
}

has_status_tcp() { # STATUS CURL_OPTION...
	test "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/" "${@:2}")" = "$1"
}

test_requests() {
	check "an unknown path gets 404" has_status 404 /etc/passwd
	check "POST gets 405" has_status 405 /metrics -X POST
	check "a request with a body gets 413" has_status 413 /metrics -X GET --data x
	check "seconds=0 gets 400" has_status 400 '/debug/pprof/profile?seconds=0'
	check "more than 300 seconds get 400" has_status 400 '/debug/pprof/profile?seconds=301'
	check "huge headers get 431" has_status 431 /metrics -H "X: $(head -c 60000 /dev/zero | tr '\0' x)"
	check "the page's policy allows no script but its own" eval \
		"get / -D - | grep -q \"^Content-Security-Policy: default-src 'none'.*script-src 'self'\""
}

# Another reader is answered, by the time in which slow ones are closed.
answered() {
	get /debug/pprof/ --fail --max-time 9 -o /dev/null && get /metrics --fail --max-time 9 -o /dev/null
}

test_hostile() {
	local kept slow loris idle n began most=78

	exec {slow}> >("$client" slow "$sock" /debug/pprof/total >"$dir/slow")
	exec {loris}< <(as_other "$reader" "$client" loris "$sock" 50)
	read -r -t 60 n <&"$loris"
	test "$n" = open || fail "a slow loris has connected" "$n"
	exec {idle}> >(as_other "$reader" "$client" idle "$sock" 200 78 >"$dir/idle")
	until { read -r kept <"$dir/idle"; } 2>/dev/null; do
		sleep 0.1
	done
	! read -r -t 0 <&"$loris" || most=128 # it was closed before those came
	check "readers are answered beside slow, slow-loris and idle connections" answered
	if ((kept > 0 && kept <= most)); then
		ok "a user has at most 128 connections"
	else
		fail "a user has at most 128 connections" "beside $((128 - most)), $kept of 200 are kept"
	fi
	for n in {1..20}; do
		timeout 0.3 curl -s --unix-socket "$sock" 'http://localhost/debug/pprof/profile?seconds=60' -o /dev/null &
	done
	read -r -t 60 n <&"$loris"
	# One whose time limit began anew with each byte would never be closed.
	if [[ $n != never ]] && awk -v n="$n" 'BEGIN { exit !(n > 9 && n < 25) }'; then
		ok "a request whose headers take longer than 10 s is closed"
	else
		fail "a request whose headers take longer than 10 s is closed" "after $n s"
	fi
	exec {slow}>&- {idle}>&- {loris}<&-
	began=$SECONDS
	until n=$(get /metrics | awk '/^profil_http_connections / { print $2 }') && test "$n" = 1; do
		test $((SECONDS - began)) -lt 60 || break
		sleep 0.1
	done
	if test "$n" = 1; then
		ok "readers that hang up leave no connection"
	else
		fail "readers that hang up leave no connection" "$n connections"
	fi
}

# Answers within 100 ms share a snapshot, and only a snapshot asks profild.
test_flood() {
	local before after n began=$EPOCHREALTIME ms flood going

	before=$(snapshots)
	mkfifo "$dir/going"
	as_other "$reader" "$client" flood "$sock" 5 <"$dir/going" >"$dir/flood" &
	flood=$!
	exec {going}>"$dir/going"
	check "readers are answered during a flood of requests" answered
	check "profild answers its other clients during the flood" "$BUILD/profilctl" machine status
	exec {going}>&-
	wait "$flood"
	n=$(cat "$dir/flood")
	after=$(snapshots)
	ms=$((${EPOCHREALTIME/./} / 1000 - ${began/./} / 1000))
	if ((n >= 100 && after - before <= ms / 100 + 3)); then
		ok "the flood costs profild at most ten snapshots a second"
	else
		fail "the flood costs profild at most ten snapshots a second" \
			"$((after - before)) snapshots in $ms ms, for $n answers"
	fi
	printf '# %s answers in %s ms of %s snapshots\n' "$n" "$ms" "$((after - before))"
	check "profil-http and profild survive the flood" eval "alive $http && alive $daemon"
}

# Closing the server's descriptor ends whatever waits for an answer.
unhang() {
	exec {hung}>&-
	hung=
	umount -l "$dir/hung"
}

# A file that is new after the first scrape has a series once it has used a second of CPU time.
metrics_name() { # PATH
	local end=$((SECONDS + 120))

	until get /metrics --max-time 5 >"$dir/metrics" && grep -q "$1" "$dir/metrics"; do
		test "$SECONDS" -lt "$end" || return 1
		sleep 0.2
	done
}

# A file system that never answers is mounted over the directory of a program that runs.
test_hung_files() {
	local what="profiles are served while the file system of a running program hangs"
	local path=$dir/hung/busy

	mkdir "$dir/hung"
	cp /bin/bash "$path"
	"$path" -c 'while :; do :; done' &
	started+=("$!")
	until test "/proc/$!/exe" -ef "$path"; do alive "$!" || break; done # it execs before the file hangs
	exec {hung}<>/dev/fuse
	if ! mount -i -t fuse -o "fd=$hung,rootmode=40000,user_id=0,group_id=0,allow_other" none "$dir/hung" 2>"$dir/mount"; then
		exec {hung}>&-
		hung=
		skip "$what" "FUSE cannot be mounted: $(cat "$dir/mount")"
		return
	fi
	check "$what" get '/debug/pprof/profile?seconds=1' --fail -o "$dir/of-hung"
	check "metrics name the file on a hung file system" metrics_name "$path"
	unhang
}

test_off() {
	"$BUILD/profilctl" machine off
	check "profil-http answers 503 while the machine profile is off" has_status 503 '/debug/pprof/profile?seconds=1'
	check "the metrics have profil_up 0 while the machine profile is off" eval "get /metrics | grep -qx 'profil_up 0'"
	"$BUILD/profilctl" machine on 2>/dev/null
	check "profil-http serves a machine profile that was turned on again" has_status 200 '/debug/pprof/profile?seconds=1'
	daemon_stop
	check "profil-http answers 503 without a daemon" has_status 503 '/debug/pprof/profile?seconds=1'
}

if ! test -x "$BUILD/profil-http"; then
	lacks "profil-http was built" "libmicrohttpd"
	finish
fi
port=$(free_port)
daemon_start --machine=199 --ephemeral
bash -c 'while :; do :; done' &
busy=$!
started+=("$busy")
http_start --listen "127.0.0.1:$port"
test_pprof
test_against_profilctl
test_prometheus
test_cost
test_rights
test_tcp
test_requests
test_hostile
test_flood
test_hung_files
test_off
kill "$http"
wait "$http"
status=$?
if test "$status" -eq 0 && ! test -e "$sock"; then
	ok "SIGTERM ends profil-http with 0 and removes its socket"
else
	fail "SIGTERM ends profil-http with 0 and removes its socket" "status $status: $(cat "$dir/http-log")"
fi
finish
