#!/bin/bash
# service.sh - the packages under a real systemd: activation, restarts, watchdog, upgrade, purge
#
# Runs inside a guest, in a directory with the packages in deb/ and a later version in deb-next/.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
# shellcheck source=tests/night/vm/counts.sh
. tests/night/vm/counts.sh
# shellcheck source=tests/night/vm/exposure.sh
. tests/night/vm/exposure.sh
# shellcheck source=tests/night/vm/attacks.sh
. tests/night/vm/attacks.sh
export PROFIL_SOCKET=/run/profil/profil.sock
CAPABILITIES=000000c000280002 # DAC_OVERRIDE, SYS_PTRACE, SYS_ADMIN, PERFMON, BPF
EFFECTIVE=000000c000280000	# DAC_OVERRIDE has only what opens the memory of clients

show() { # PROPERTY
	systemctl show -P "$1" profild.service
}

not_in_time() { # COMMAND...
	echo "$* failed for the time given; profild.service is $(show ActiveState)/$(show SubState)" \
		"after $(show NRestarts) restarts, its last result: $(show Result)"
}

# systemd has no event that a shell could wait for.
await() { # SECONDS COMMAND...
	local end=$((SECONDS + $1))

	shift
	until "$@" >/dev/null 2>&1; do
		test "$SECONDS" -lt "$end" || { not_in_time "$@"; return 1; }
		sleep 0.2
	done
}

as_user() {
	runuser -u tester -- "$@"
}

is_active() {
	test "$(show ActiveState)" = active
}

# The first call to the socket starts the daemon. Emulated, that can take longer than the 10 s that libprofil waits: then the next
# call is the one that is counted.
first_call() {
	runs_right as_user "$BUILD/tests/programs/split.linked" && return
	grep -q 'Connection timed out' "$dir/split" && await 120 is_active &&
		runs_right as_user "$BUILD/tests/programs/split.linked"
}

# A program that has ended is not.
profiled() {
	local pid

	pid=$(pgrep -u tester -x split.linked) &&
		profilctl list | awk -v pid="$pid" '$1 == pid { found = 1 } END { exit !found }'
}

running() { # RESTARTS
	test "$(show ActiveState)" = active && test "$(show NRestarts)" -ge "$1"
}

is_off() {
	test "$(show ActiveState)" = inactive
}

# Does something to the service while an unprivileged user's program is profiled, which goes on for as
# long as that takes.
amid_a_profile() { # COMMAND...
	local program input status=0

	mkfifo "$dir/input"
	as_user "$BUILD/tests/programs/split.linked" 2 on <"$dir/input" >"$dir/split" 2>&1 &
	program=$!
	exec {input}>"$dir/input"
	await 120 profiled && "$@" || status=1
	exec {input}>&-
	rm "$dir/input"
	wait "$program" || status=1
	test "$status" -eq 0 || cat "$dir/split"
	return "$status"
}

# The same, and it still is when that has been done.
counts_through() { # COMMAND...
	amid_a_profile and_still_profiled "$@" && counts_right
}

and_still_profiled() { # COMMAND...
	"$@" && await 120 profiled
}

killed() {
	local restarts

	restarts=$(show NRestarts)
	systemctl kill -s KILL profild.service
	await 240 running $((restarts + 1))
}

stopped_in_its_tracks() {
	local restarts

	restarts=$(show NRestarts)
	systemctl kill -s STOP profild.service
	await 240 running $((restarts + 1))
}

# A unit's own file, changed for this boot.
watchdog_of() { # SECONDS
	mkdir -p /run/systemd/system/profild.service.d
	printf '[Service]\nWatchdogSec=%s\n' "$1" >/run/systemd/system/profild.service.d/watchdog.conf
	systemctl daemon-reload
	systemctl restart profild.service
}

packages() { # DPKG_OPTION DIRECTORY
	dpkg "$1" "$2"/profild_*.deb "$2"/profilctl_*.deb "$2"/profil-http_*.deb "$2"/libprofil1_*.deb "$2"/libprofil-dev_*.deb
}

# What was built with a version is what runs now, at the socket that was there before.
upgraded() {
	local version socket

	version=$(dpkg-deb -f deb-next/profild_*.deb Version)
	socket=$(stat -c %i "$PROFIL_SOCKET")
	packages -i deb-next || return 1
	await 240 running 0 || return 1
	"/proc/$(show MainPID)/exe" --version | grep -Fx "profild $version" &&
		test "$(stat -c %i "$PROFIL_SOCKET")" = "$socket"
}

# Files that have us in their name, but for what dpkg and the journal remember.
ours() {
	find / /run -xdev '(' -path /run/vm -o -path /tmp -o -path /var/log -o -path /var/cache ')' -prune -o \
		-iname '*profil*' -print | sort
}

# Writes the file of options, has it read, and waits until the journal has it.
reload() { # FILE_TEXT
	local times

	times=$(times_read)
	cp /etc/profil/profild.conf "$dir/conf"
	echo "$1" >/etc/profil/profild.conf
	systemctl reload profild.service && await 120 read_again "$times"
}

times_read() {
	journalctl -q -o cat -u profild.service MESSAGE="limits reloaded" | wc -l
}

read_again() { # TIMES
	test "$(times_read)" -gt "$1"
}

has_journal() { # JOURNALCTL_ARGS...
	test "$(journalctl -q -o cat "$@")"
}

# The samples of the machine's profile are at least this many.
has_samples() { # AT_LEAST
	test "$(profilctl machine report -f json | jq .samples.total)" -ge "$1"
}

# Turned on by the file of options, the machine's profile continues after the restart with the counts that it had.
machine_through_restart() {
	local status=1 before

	cp /etc/profil/profild.conf "$dir/conf"
	echo machine=97 >>/etc/profil/profild.conf
	systemctl restart profild.service && await 120 has_samples 200 &&
		before=$(profilctl machine report -f json | jq .samples.total) &&
		systemctl restart profild.service && has_samples "$before" && status=0
	cp "$dir/conf" /etc/profil/profild.conf
	profilctl machine off
	return "$status"
}

is_refused() {
	as_user "$BUILD/tests/programs/split.linked" 0.1 2>&1 | grep 'Cannot allocate memory'
}

of_process() { # FIELD
	sed -n "s/^$1:[[:space:]]*//p" "/proc/$(show MainPID)/status"
}

before=$(loaded)
ours >"$dir/ours"
useradd tester
check "the packages are installed by dpkg" packages -i deb
check "the units pass systemd's own check" \
	says_nothing "$(systemd-analyze verify --man=no profild.service profild.socket \
		profil-http.service profil-http.socket profil-spool.service profil-interpreters.path \
		profil-interpreters.service 2>&1)"
check "anyone may connect" test "$(stat -c %A:%U "$PROFIL_SOCKET")" = srw-rw-rw-:root
check "no daemon runs before the first call" is_off
check "a user's first profil() starts it and is counted" first_call
check "bpftool sees what it has in the kernel" test "$(loaded)" != "$before"
check "it runs since it said so" test "$(show Type):$(show ActiveState)" = notify:active
check "it runs as its own user" test "$(ps -o user= -p "$(show MainPID)")" = profil
check "CapEff are four of its capabilities" test "$(of_process CapEff)" = $EFFECTIVE
for field in CapBnd CapPrm; do
	check "$field are its five capabilities" test "$(of_process $field)" = $CAPABILITIES
done
check "another user's program is profiled by root" \
	profilctl record -F 200 -o "$dir/report" -- runuser -u tester -- "$BUILD/tests/programs/split" 1

# shellcheck source=tests/night/vm/http.sh
. tests/night/vm/http.sh

mapfile -t commands <tests/night/vm/attacks.list
attacks "${commands[@]}"

check "a profile continues through systemctl restart" counts_through systemctl restart profild.service
check "a profile continues through kill -9" counts_through killed
check "the machine's profile from the file of options continues through systemctl restart" machine_through_restart
check "a profile above a new limit continues through systemctl reload" counts_through reload "user-bins 1"
check "the next is refused" is_refused
check "the journal has it with its unit, user, priority and name" has_journal \
	_SYSTEMD_UNIT=profild.service _UID="$(id -u profil)" PRIORITY=5 SYSLOG_IDENTIFIER=profild \
	MESSAGE="limits reloaded"
cp "$dir/conf" /etc/profil/profild.conf
systemctl reload profild.service
watchdog_of 15 # an emulated machine may stand still for five seconds of its own
check "the watchdog restarts a daemon that stands still, a profile continues" \
	counts_through stopped_in_its_tracks
check "as the journal says" await 60 has_journal -u profild.service --grep 'Watchdog timeout'
rm -r /run/systemd/system/profild.service.d
systemctl daemon-reload
check "a profile continues through an upgrade of the packages" counts_through upgraded

check "systemctl stop does no harm to a profiled program" \
	amid_a_profile systemctl stop profil-http.socket profild.socket profild.service
left=$(left_behind "$before")
check "and leaves nothing in the kernel" says_nothing "$left"
check "systemctl stop leaves no pin in bpffs" says_nothing "$(find /sys/fs/bpf -name 'profil*')"
check "systemctl stop leaves no socket" test ! -e /run/profil
check "and all can be started again" systemctl start profild.socket
check "the next call after systemctl stop starts the daemon and is counted" first_call
check_exposure profild.service

check "a purge does no harm to a profiled program" \
	amid_a_profile dpkg --purge profil-http profild profilctl libprofil-dev libprofil1
left=$(left_behind "$before")
check "and leaves nothing in the kernel, then" says_nothing "$left"
check "a purge leaves no process" says_nothing "$(pgrep -x profild)"
check "a purge leaves no unit" says_nothing "$(systemctl list-units --all --plain --no-legend 'profil*')"
check "a purge leaves no file" says_nothing "$(comm -13 "$dir/ours" <(ours))"
if test "$failed" -gt 0; then
	journalctl -b --no-pager -u profild.service -u profild.socket -u profil-http -u profil-spool -u init.scope | tail -n 60 | sed 's/^/  /'
	dmesg --level=emerg,alert,crit,err,warn | tail -n 20 | sed 's/^/  /'
fi
finish
