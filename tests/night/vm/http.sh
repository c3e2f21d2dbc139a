#!/bin/bash
# http.sh - the machine's profile under a real systemd: by HTTP, fed, in a spool, and pushed
#
# To be sourced by service.sh, whose packages are installed.

test -d "${dir:?}"
HTTP_SOCKET=/run/profil/http.sock
SPOOL=/var/lib/profil-spool

of_unit() { # UNIT PROPERTY
	systemctl show -P "$2" "$1"
}

as_reader() {
	runuser -u reader -- "$@"
}

get() { # PATH CURL_ARGS...
	curl -sS --unix-socket "$HTTP_SOCKET" --max-time 120 "http://profil$1" "${@:2}"
}
export -f get
export HTTP_SOCKET

# A profile in gzip that names what its samples are of.
gets_a_profile() {
	as_reader bash -c 'get "/debug/pprof/profile?seconds=3"' >"$dir/profile.gz" &&
		zcat "$dir/profile.gz" >"$dir/profile" && grep -aq nanoseconds "$dir/profile" &&
		grep -aq "$(cat /proc/sys/kernel/random/boot_id)" "$dir/profile"
}

# Of the system calls of a program that does little else.
names_the_kernel() {
	local busy status

	dd if=/dev/zero of=/dev/null bs=1 status=none &
	busy=$!
	gets_a_profile
	status=$?
	kill "$busy"
	test "$status" -eq 0 && grep -aqE 'vfs_read|ksys_read|read_iter_zero|vfs_write' "$dir/profile"
}

gets_nothing() {
	! as_user bash -c 'get /metrics' >"$dir/nothing" 2>&1 && grep -E 'Permission denied|connect' "$dir/nothing" &&
		! grep samples "$dir/nothing"
}

# A process of another user, by its pid.
attaches() {
	local busy pid status=1

	as_user sha256sum /dev/zero &
	busy=$!
	await 60 pgrep -u tester -x sha256sum && pid=$(pgrep -u tester -x sha256sum) &&
		as_reader profilctl attach -d 2 -f json "$pid" >"$dir/attached" && status=0
	kill "$pid"
	wait "$busy"
	test "$status" -eq 0 && test "$(jq .samples.total "$dir/attached")" -gt 10
}

# A service that has started may not have become its user yet.
runs_as() { # UNIT USER
	test "$(ps -o user:32= -p "$(of_unit "$1" MainPID)")" = "$2"
}

has_files() { # AT_LEAST
	test "$(find "$SPOOL" -name '*.json.gz' | wc -l)" -ge "$1"
}

check_http() {
	check "the HTTP socket is group profil's" test "$(stat -c %A:%U:%G "$HTTP_SOCKET")" = srw-rw----:root:profil
	check "profil-http does not run before the first reader" test "$(of_unit profil-http ActiveState)" = inactive
	check "the machine's profile is turned on" profilctl machine on
	check "a member of group profil gets a profile" gets_a_profile
	check "a member attaches to another user's process" attaches
	check "profil-http runs since then" test "$(of_unit profil-http ActiveState)" = active
	check "as a user of its own" test "$(ps -o uid= -p "$(of_unit profil-http MainPID)")" -ge 61184
	check "with CAP_SYSLOG only" grep -qx $'CapPrm:\t0000000400000000' "/proc/$(of_unit profil-http MainPID)/status"
	check "the kernel's functions have names" names_the_kernel
	check "and metrics" as_reader bash -c 'get /metrics -H "Accept: application/openmetrics-text" | grep "^# EOF"'
	check "another user gets nothing" gets_nothing
	check_exposure profil-http.service
	check "it ends without failing" systemctl stop profil-http.service
	check "with status 0" test "$(of_unit profil-http Result)" = success
}

stacks() { # FILE CURL_ARGS...
	as_reader bash -c 'get "/debug/pprof/stacks?seconds=3" "$@"' get "${@:2}" >"$1"
}

# Stacks of a program that does nothing but work.
gets_stacks() {
	local busy found

	sha256sum /dev/zero &
	busy=$!
	stacks "$dir/stacks.gz"
	found=$?
	kill "$busy"
	test "$found" -eq 0 && zcat "$dir/stacks.gz" | grep -aq sha256sum
}

check_stacks() {
	check "the machine's profile has stacks from now on" profilctl machine on -g
	check "call stacks of the machine are served" gets_stacks
	systemctl stop profil-http.service
}

has_feeder() {
	test "$(profilctl machine status --json | jq .feeder)" != 0
}

# The interpreters were described when the packages were installed.
names_perl() {
	local busy status

	perl -e 'sub burn_in_perl { my $s = 0; $s += $_ for 1 .. 10000; $s } burn_in_perl() while 1' &
	busy=$!
	profilctl machine report -d 5 -f json >"$dir/perl"
	jq -e '[.functions[] | select(.name | test("burn_in_perl"))] | length > 0' "$dir/perl"
	status=$?
	kill "$busy"
	return "$status"
}

check_feed() {
	check "the feeder starts" systemctl start profil-feed.service
	check "it feeds the machine's profile" await 120 has_feeder
	check "profil-interpreters.service has described Perl" test -s /var/lib/profil/interpreters
	check "functions of Perl have names in the machine's profile" names_perl
	check_exposure profil-feed.service
	check_exposure profil-interpreters.service
	check "it ends without failing" systemctl stop profil-feed.service
	check "with status 0" test "$(of_unit profil-feed Result)" = success
}

# Answers 200 to each request, in the background; one line in FILE for each.
receive() { # PORT FILE
	exec perl -MIO::Socket::INET -e '
		my ($port, $file) = @ARGV;
		my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => $port, Listen => 5) or die "$!";
		while (my $c = $s->accept) {
			my ($n, $body) = (0);
			while (<$c>) { $n = $1 if /^content-length: *(\d+)/i; last if /^\r?\n$/ }
			read $c, $body, $n;
			open my $f, ">>", $file or die "$!";
			print $f length($body), "\n";
			close $f;
			print $c "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
			close $c;
		}' "$@"
}

check_push() {
	local receiver

	receive 4318 "$dir/pushed" &
	receiver=$!
	cp /etc/profil/push.conf "$dir/push.conf"
	echo 'endpoint http://127.0.0.1:4318' >>/etc/profil/push.conf
	check "the push starts" systemctl start profil-push.service
	check "as its own user" await 60 runs_as profil-push profil-push
	check "it sends what the spool has" await 120 test -s "$dir/pushed"
	check_exposure profil-push.service
	check "it ends without failing" systemctl stop profil-push.service
	check "with status 0" test "$(of_unit profil-push Result)" = success
	systemctl stop profil-spool.service
	cp "$dir/push.conf" /etc/profil/push.conf
	kill "$receiver"
}

check_spool() {
	mkdir -p /run/systemd/system/profil-spool.service.d
	printf '[Service]\nExecStart=\nExecStart=%s\n' "/usr/bin/profilctl machine spool -i 5 $SPOOL" \
		>/run/systemd/system/profil-spool.service.d/short.conf
	systemctl daemon-reload
	check "the spool starts" systemctl start profil-spool.service
	check "as its own user" await 60 runs_as profil-spool profil-spool
	check "it keeps profiles" await 120 has_files 2
	check "for group profil to read" as_reader profilctl report --since -1h
	check "a user outside group profil is refused the spool" test "$(as_user profilctl report --since -1h 2>/dev/null; echo $?)" = 4
	check "the kernel's functions have names in it" jq -se \
		'[.[].functions[] | select(.object == "[kernel]" and .named)] | length > 1' <(zcat "$SPOOL"/*.json.gz)
	check_exposure profil-spool.service
	check "it ends without failing" systemctl stop profil-spool.service
	check "with status 0" test "$(of_unit profil-spool Result)" = success
	rm -r /run/systemd/system/profil-spool.service.d
	systemctl daemon-reload
}

useradd -G profil reader
check_http
check_stacks
check_feed
check_spool
check_push
check "the machine's profile is turned off" profilctl machine off
