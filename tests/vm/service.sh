#!/bin/bash
# service.sh - the daemon as a service of a real systemd: activation, restarts, watchdog, stop
#
# Runs inside a guest, in a directory with what "make install" has put below root/.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"
# shellcheck source=tests/vm/counts.sh
. tests/vm/counts.sh
export PROFIL_SOCKET=/run/profil/profil.sock
CAPABILITIES=000000c000280002 # DAC_OVERRIDE, SYS_PTRACE, SYS_ADMIN, PERFMON, BPF
EXPOSURE_MAX=1.5

show() { # PROPERTY
	systemctl show -P "$1" profild.service
}

# systemd has no event that a shell could wait for.
await() { # SECONDS COMMAND...
	local end=$((SECONDS + $1))

	shift
	until "$@" >/dev/null 2>&1; do
		test "$SECONDS" -lt "$end" || { echo "not within the time given: $*"; return 1; }
		sleep 0.2
	done
}

as_user() {
	runuser -u tester -- "$@"
}

profiled() {
	profilctl list | grep -qw "$(pgrep -u tester -x split.linked)"
}

running() { # RESTARTS
	test "$(show ActiveState)" = active && test "$(show NRestarts)" -ge "$1"
}

# Does something to the service while an unprivileged user's program is profiled.
amid_a_profile() { # COMMAND...
	local program status=0

	as_user "$BUILD/tests/programs/split.linked" 10 >"$dir/split" 2>&1 &
	program=$!
	await 60 profiled && "$@" || status=1
	wait "$program" || status=1
	return "$status"
}

counts_through() { # COMMAND...
	amid_a_profile "$@" && counts_right
}

killed() {
	local restarts

	restarts=$(show NRestarts)
	systemctl kill -s KILL profild.service
	await 30 running $((restarts + 1))
}

stopped_in_its_tracks() {
	local restarts

	restarts=$(show NRestarts)
	systemctl kill -s STOP profild.service
	await 60 running $((restarts + 1))
}

# A unit's own file, changed for this boot.
watchdog_of() { # SECONDS
	mkdir -p /run/systemd/system/profild.service.d
	printf '[Service]\nWatchdogSec=%s\n' "$1" >/run/systemd/system/profild.service.d/watchdog.conf
	systemctl daemon-reload
	systemctl restart profild.service
}

install_all() {
	cp -a root/. / && ldconfig && systemd-sysusers && useradd tester &&
		systemctl daemon-reload && systemctl start profild.socket
}

of_process() { # FIELD
	sed -n "s/^$1:[[:space:]]*//p" "/proc/$(show MainPID)/status"
}

exposure() {
	systemd-analyze security --no-pager profild.service | sed -n 's/.*exposure level.*: \([0-9.]*\).*/\1/p'
}

before=$(loaded)
check "what make install leaves can be started" install_all
check "the units pass systemd's own check" \
	says_nothing "$(systemd-analyze verify --man=no profild.service profild.socket 2>&1)"
check "anyone may connect" test "$(stat -c %A:%U /run/profil/profil.sock)" = srw-rw-rw-:root
check "no daemon runs before the first call" test "$(show ActiveState)" = inactive
check "a user's first profil() starts it and is counted" \
	runs_right as_user "$BUILD/tests/programs/split.linked"
check "it runs since it said so" test "$(show Type):$(show ActiveState)" = notify:active
check "it runs as its own user" test "$(ps -o user= -p "$(show MainPID)")" = profil
for field in CapEff CapBnd CapPrm; do
	check "$field are its five capabilities" test "$(of_process $field)" = $CAPABILITIES
done
check "another user's program is profiled by root" \
	profilctl record -F 200 -o "$dir/report" -- runuser -u tester -- "$BUILD/tests/programs/split" 1
check "a profile goes on through systemctl restart" counts_through systemctl restart profild.service
check "a profile goes on through kill -9" counts_through killed
watchdog_of 5
check "the watchdog restarts a daemon that stands still, a profile goes on" \
	counts_through stopped_in_its_tracks
check "as the journal says" grep -q 'Watchdog timeout' <(journalctl -u profild.service)
check "systemctl stop does no harm to a profiled program" \
	amid_a_profile systemctl stop profild.socket profild.service
left=$(left_behind "$before")
check "and leaves nothing in the kernel" says_nothing "$left"
check "nor a socket" test ! -e /run/profil/profil.sock
check "and all can be started again" systemctl start profild.socket
check "for the next call" runs_right as_user "$BUILD/tests/programs/split.linked"

score=$(exposure)
check "systemd-analyze security: $score, at most $EXPOSURE_MAX" \
	awk -v score="$score" -v max="$EXPOSURE_MAX" 'BEGIN { exit !(score > 0 && score <= max) }'
if test "$failed" -gt 0; then
	journalctl -b --no-pager -u profild.service -u profild.socket -u init.scope | tail -n 60 | sed 's/^/  /'
	dmesg --level=emerg,alert,crit,err,warn | tail -n 20 | sed 's/^/  /'
fi
finish
