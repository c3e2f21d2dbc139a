#!/bin/bash
# profilctl.sh - what profilctl says and returns when something is wrong, and what needs no ticks
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

ctl=$BUILD/profilctl

# The command must return $2, and say one line on stderr that holds $3.
refuses() { # NAME STATUS WORDS COMMAND...
	local name=$1 status=$2 words=$3 got

	shift 3
	"$@" >"$dir/stdout" 2>"$dir/stderr"
	got=$?
	if test "$got" -ne "$status"; then
		fail "$name" "$* returned $got, not $status: $(cat "$dir/stderr")"
	elif test "$(wc -l <"$dir/stderr")" -ne 1 || ! grep -qF -- "$words" "$dir/stderr"; then
		fail "$name" "$* said, without \"$words\": $(cat "$dir/stderr")"
	else
		ok "$name"
	fi
}

check "--help is on stdout" sh -c "test \"\$($ctl --help 2>&1 >/dev/null)\" = '' && $ctl --help | grep -q record"
check "a verb has its own help" sh -c "$ctl record --help | grep -q -- '--rate HZ'"
check "--version says which" sh -c "$ctl --version | grep -qx 'profilctl [0-9.]*'"
refuses "an unknown verb" 2 "no verb is called frobnicate" "$ctl" frobnicate
refuses "an unknown option" 2 "--frobnicate" "$ctl" record --frobnicate -- true
refuses "an option without its value" 2 "no value after -F" "$ctl" record -F
refuses "rate 0" 2 "from 1 to 50000 Hz" "$ctl" record -F 0 -- true
refuses "rate 10^9" 2 "from 1 to 50000 Hz" "$ctl" record -F 1000000000 -- true
refuses "a rate that is none" 2 "from 1 to 50000 Hz" "$ctl" record -F -7 -- true
refuses "a rate of words" 2 "from 1 to 50000 Hz" "$ctl" record --rate 10x -- true
refuses "a duration that is none" 2 "seconds" "$ctl" record -d never -- true
refuses "a duration of nothing" 2 "seconds" "$ctl" record -d 0 -- true
refuses "an unknown format" 2 "must be text, json, pprof" "$ctl" record -f xml -- true
refuses "an unknown sum" 2 "must be function, inlined" "$ctl" report --by colour file
refuses "an unknown clock" 2 "cpu-clock" "$ctl" record --clock sun -- true
refuses "no command" 2 "no command given" "$ctl" record -F 100
refuses "no process" 2 "no process given" "$ctl" attach
refuses "a process twice" 2 "is named twice" "$ctl" attach $$ $$
refuses "a process of words" 2 "no process id" "$ctl" attach self
refuses "pid 0" 2 "no process id" "$ctl" attach 0
refuses "a process and a selection" 2 "selected by an option" "$ctl" attach --comm sh 1
refuses "nobody of that name" 6 "no process is such" "$ctl" attach --comm "no such name"
refuses "a unit that is none" 6 "no process is such" "$ctl" attach --unit no-such-unit
refuses "a unit without a name" 2 "unit: no name given" "$ctl" attach --unit ''
refuses "a process without a name" 2 "comm: no name given" "$ctl" top --comm ''
refuses "a cgroup without a path" 2 "must be a path" "$ctl" attach --cgroup ''
refuses "a file that is none" 2 "No such file" "$ctl" attach --exe "$dir/no-such-file"
refuses "slices that are none" 2 "60x1" "$ctl" record --slices 60 -- true
refuses "an odd number of slices" 2 "even number" "$ctl" record --slices 3x1 -- true
refuses "top: a process twice" 2 "is named twice" "$ctl" top $$ $$
refuses "top: a process and a selection" 2 "selected by an option" "$ctl" top --comm sh 1
refuses "top: an unknown pid" 6 "no process 4194305" "$ctl" top 4194305
refuses "no tables" 2 "from 1 on" "$ctl" top -n 0
refuses "no interval" 2 "seconds" "$ctl" top -i 0
refuses "an unknown pid" 6 "no process 4194305" "$ctl" attach 4194305
refuses "a socket path that no socket can have" 1 "cannot talk to profild" \
	"$ctl" status -s "/tmp/$(printf '%0120d' 1)"

kthread=$(pgrep -o -x kthreadd)
if test "$kthread"; then
	refuses "a kernel thread" 1 "kernel thread" "$ctl" attach "$kthread"
	refuses "top: a kernel thread" 1 "kernel thread" "$ctl" top "$kthread"
else
	skip "a kernel thread" "there is none in this pid namespace"
fi

exec {threads}< <(exec python3 -c 'import signal, threading
threading.Thread(target=lambda: print(threading.get_native_id(), flush=True) or signal.sigwait([signal.SIGUSR1]),
    daemon=True).start()
signal.pause()')
threaded=$!
read -r -u "$threads" thread
for verb in attach top; do
	refuses "$verb: a thread" 1 "is a thread of process $threaded" "$ctl" $verb "$thread"
done
kill "$threaded"

sleep 0 &
wait "$!"
refuses "a process that has ended" 6 "no process $!" "$ctl" attach "$!"
exec {children}< <(exec python3 -c 'import os, signal
pid = os.fork() or os._exit(0)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
print(pid, flush=True)
signal.pause()')
parent=$!
read -r -u "$children" zombie
refuses "a zombie" 6 "process $zombie has ended" "$ctl" attach "$zombie"
kill "$parent"

touch "$dir/ran-not"
refuses "an output that cannot be written" 1 "cannot write $dir/no/such" \
	"$ctl" record -o "$dir/no/such" -- rm "$dir/ran-not"
check "... is found before the command runs" test -e "$dir/ran-not"
refuses "a report of nothing" 1 "cannot read $dir/nothing" "$ctl" report "$dir/nothing"
echo '{"schema":"profil/1"}' >"$dir/other"
refuses "a report of something else" 1 "no profile that profilctl has written" \
	"$ctl" report "$dir/other"
head -c 1000 /dev/urandom >"$dir/noise"
refuses "a report of noise" 1 "cannot read $dir/noise" "$ctl" report "$dir/noise"

# Where no daemon is and none can be started.
refuses "status without a daemon" 5 "no profild answers" "$ctl" status -s "$dir/nobody"
refuses "list without a daemon" 5 "no profild answers" "$ctl" list -s "$dir/nobody"
if test "$(id -u)" -eq 0; then
	cp "$ctl" "$dir/profilctl"
	cat >"$dir/profild" <<-'END'
		#!/bin/sh
		echo "profild: the kernel is out of order" >&2
		exit 1
	END
	chmod 755 "$dir/profild"
	"$dir/profilctl" record -s "$dir/nobody" -- true 2>"$dir/stderr"
	check "a private daemon that fails: status 5" test $? -eq 5
	check "... and its words" grep -q "the kernel is out of order" "$dir/stderr"
	refuses "no root and no daemon" 5 "only root can start one" \
		setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$dir/profilctl" record -s "$dir/nobody" -- true
else
	refuses "no root and no daemon" 5 "only root can start one" \
		"$ctl" record -s "$dir/nobody" -- true
fi

daemon_start
check "status shows the daemon" sh -c "$ctl status | grep -q 'pid $daemon,'"
check "list has its heading" sh -c "$ctl list | grep -q 'unmatched'"
check "list shows nothing where nothing is profiled" test "$("$ctl" list | wc -l)" -eq 1
check "-s says which daemon" sh -c "PROFIL_SOCKET=/nowhere $ctl status -s '$PROFIL_SOCKET' | grep -q $daemon"
refuses "a command that does not exist" 1 "cannot run $dir/no-such-command: No such file" \
	"$ctl" record -- "$dir/no-such-command"
refuses "a command that may not be run" 1 "cannot run $dir/other: Permission denied" \
	"$ctl" record -- "$dir/other"
check "the daemon has survived it all" sh -c "$ctl status | grep -q 'profiles   0,'"
daemon_stop

# Where there is not much room. Root would have all that there is.
other=()
test "$(id -u)" -ne 0 || other=(setpriv --reuid=65534 --regid=65534 --clear-groups)
daemon_start --user-connections 1
exec {held}< <(exec "${other[@]}" /usr/bin/python3 -c 'import signal, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
print(len(s.recv(512)), flush=True)
signal.pause()' "$PROFIL_SOCKET")
holder=$!
read -r -u "$held"
refuses "one client too many" 1 "as many clients as it takes" "${other[@]}" "$ctl" status
kill "$holder"
daemon_stop
daemon_start --user-profiles 1
cp "$(command -v sleep)" "$dir/sleeper"
"${other[@]}" "$dir/sleeper" 100 &
one=$!
"${other[@]}" "$dir/sleeper" 100 &
two=$!
until test "$(cat "/proc/$one/comm" "/proc/$two/comm")" = $'sleeper\nsleeper'; do
	kill -0 "$one" "$two" || break
done
refuses "attach: one process too many" 3 "no room for 1 more process;" \
	"${other[@]}" "$ctl" attach -d 0.1 --comm sleeper
refuses "top: one process too many" 3 "no room for 1 more process;" \
	"${other[@]}" "$ctl" top -b -n 1 -i 0.1 --comm sleeper
kill "$one" "$two"
daemon_stop
finish
