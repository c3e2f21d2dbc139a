#!/bin/bash
# profilctl.sh - error messages and exit statuses of profilctl, and what needs no samples
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl

# The command must return STATUS and print one line on stderr that contains WORDS.
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

check "--help prints to stdout alone" sh -c "test \"\$($ctl --help 2>&1 >/dev/null)\" = '' && $ctl --help | grep -q record"
check "each verb has its own help" sh -c "$ctl record --help | grep -q -- '--rate HZ'"
check "--version prints the version" sh -c "$ctl --version | grep -qx 'profilctl [0-9.]*'"
check "version prints the version" cmp <("$ctl" version) <("$ctl" --version)
refuses "help refuses an unknown verb" 2 "unknown verb foo" "$ctl" help foo
refuses "help refuses an unknown part of machine" 2 "machine has no part foo" "$ctl" help machine foo
check "help machine PART prints the part's help" cmp <("$ctl" help machine spool) <("$ctl" machine spool --help)
for verb in record attach run top "machine on" "machine off" "machine status" "machine report" "machine top" "machine diff" \
	"machine spool" machine report diff annotate list status doctor; do
	# shellcheck disable=SC2086 # a verb and its part
	check "$verb --help lists no option twice" test -z "$("$ctl" $verb --help |
		awk '/^ +-/ { print $1; if ($1 ~ /,$/) print $2 }' | sed 's/,$//; s/\[.*//' | sort | uniq -d)"
done
refuses "an unknown verb is refused" 2 "unknown verb frobnicate" "$ctl" frobnicate
refuses "an unknown option is refused" 2 "--frobnicate" "$ctl" record --frobnicate -- true
refuses "an option without its value is refused" 2 "option -F needs a value: HZ" "$ctl" record -F
refuses "rate 0 is refused" 2 "from 1 to 50000 Hz" "$ctl" record -F 0 -- true
refuses "rate 10^9 is refused" 2 "from 1 to 50000 Hz" "$ctl" record -F 1000000000 -- true
refuses "a negative rate is refused" 2 "from 1 to 50000 Hz" "$ctl" record -F -7 -- true
refuses "a rate with letters is refused" 2 "from 1 to 50000 Hz" "$ctl" record --rate 10x -- true
refuses "a duration that is not a number is refused" 2 "seconds" "$ctl" record -d never -- true
refuses "duration 0 is refused" 2 "seconds" "$ctl" record -d 0 -- true
refuses "an unknown format is refused" 2 "must be text, json, pprof" "$ctl" record -f xml -- true
refuses "an unknown grouping is refused" 2 "must be function, inlined" "$ctl" report --by colour file
refuses "an unknown clock is refused" 2 "cpu-clock" "$ctl" record --clock sun -- true
refuses "a rate and a number of events are refused" 2 "give one" "$ctl" record -e page-faults -F 999 -c 10 -- true
refuses "a number of events without an event is refused" 2 "-c counts events" "$ctl" record -c 10 -- true
refuses "a number of events without an event is refused with a clock, too" 2 "-c counts events" "$ctl" record --clock cpu-clock -c 1000000 -- true
refuses "a rate and a period of cpu-clock are refused" 2 "give one" "$ctl" record -c 1000000 -e cpu-clock -F 999 -- true
refuses "a period of cpu-clock below 1/50000 s is refused" 2 "from 20000 to 1000000000 (50000 to 1 Hz)" "$ctl" record -e cpu-clock -c 19999 -- true
refuses "a period of cpu-clock above 1 s is refused" 2 "from 20000 to 1000000000" "$ctl" attach -c 1000000001 -e task-clock 1
refuses "record refuses to run without a command" 2 "no command given" "$ctl" record -F 100
refuses "attach refuses to run without a process" 2 "no process given" "$ctl" attach
refuses "attach refuses a process that is named twice" 2 "is named twice" "$ctl" attach $$ $$
refuses "attach refuses a pid that is not a number" 2 "'self' is not a process id" "$ctl" attach self
refuses "attach refuses pid 0" 2 "'0' is not a process id" "$ctl" attach 0
refuses "attach refuses a pid together with a selection" 2 "selected by an option" "$ctl" attach --comm sh 1
if grep -q ' - cgroup2 ' /proc/self/mountinfo; then
	refuses "attach finds no unknown unit" 6 "no unit no-such-unit" "$ctl" attach --unit no-such-unit
else
	refuses "attach --unit needs cgroup2" 1 "no cgroup2" "$ctl" attach --unit no-such-unit
fi
refuses "attach refuses an empty unit" 2 "--unit : must not be empty" "$ctl" attach --unit ''
refuses "top refuses an empty process name" 2 "--comm : must not be empty" "$ctl" top --comm ''
refuses "attach refuses an empty cgroup path" 2 "must be a path" "$ctl" attach --cgroup ''
refuses "attach refuses an executable that does not exist" 2 "no such file" "$ctl" attach --exe "$dir/no-such-file"
refuses "record refuses slices without a width" 2 "60x1" "$ctl" record --slices 60 -- true
refuses "record refuses an odd number of slices" 2 "even number" "$ctl" record --slices 3x1 -- true
refuses "top refuses a process that is named twice" 2 "is named twice" "$ctl" top $$ $$
refuses "top refuses a pid together with a selection" 2 "selected by an option" "$ctl" top --comm sh 1
refuses "top refuses a pid that does not exist" 6 "no process 4194305" "$ctl" top 4194305
refuses "top refuses 0 tables" 2 "from 1 on" "$ctl" top -n 0
refuses "top refuses interval 0" 2 "seconds" "$ctl" top -i 0
refuses "attach refuses a pid that does not exist" 6 "no process 4194305" "$ctl" attach 4194305
refuses "a socket path of more than 107 bytes is refused" 1 "cannot talk to profild" \
	"$ctl" status -s "/tmp/$(printf '%0120d' 1)"

kthread=$(pgrep -o -x kthreadd)
if test "$kthread"; then
	refuses "attach refuses a kernel thread" 1 "kernel thread" "$ctl" attach "$kthread"
	refuses "top refuses a kernel thread" 1 "kernel thread" "$ctl" top "$kthread"
else
	skip "attach refuses a kernel thread" "there is none in this pid namespace"
fi

exec {threads}< <(exec python3 -c 'import signal, threading
threading.Thread(target=lambda: print(threading.get_native_id(), flush=True) or signal.sigwait([signal.SIGUSR1]),
    daemon=True).start()
signal.pause()')
threaded=$!
read -r -u "$threads" thread
for verb in attach top; do
	refuses "$verb refuses a thread that is not a process" 1 "is a thread of process $threaded" "$ctl" $verb "$thread"
done
kill "$threaded"

true &
wait "$!"
refuses "attach refuses a process that has ended" 6 "no process $!" "$ctl" attach "$!"
exec {children}< <(exec python3 -c 'import os, signal
pid = os.fork() or os._exit(0)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
print(pid, flush=True)
signal.pause()')
parent=$!
read -r -u "$children" zombie
if test "$(id -u)" -eq 0; then
	refuses "attach refuses a zombie" 6 "process $zombie has ended" "$ctl" attach "$zombie"
else # no daemon runs yet, and only root can start one
	skip "attach refuses a zombie" "needs root"
fi
kill "$parent"

touch "$dir/ran-not"
refuses "record refuses an output that it cannot write" 125 "cannot write $dir/no/such" \
	"$ctl" record -o "$dir/no/such" -- rm "$dir/ran-not"
check "record checks its output before it runs the command" test -e "$dir/ran-not"
refuses "report refuses a file that does not exist" 1 "cannot read $dir/nothing" "$ctl" report "$dir/nothing"
echo '{"schema":"profil/1"}' >"$dir/other"
refuses "report refuses a profile without places" 1 "without the places of samples" \
	"$ctl" report "$dir/other"
head -c 1000 /dev/urandom >"$dir/noise"
refuses "report refuses random bytes" 1 "cannot read $dir/noise" "$ctl" report "$dir/noise"

# A selector that cannot match says so.
printf '#!/bin/sh\n' >"$dir/script"
refuses "attach --exe refuses a script" 2 "a script, which its interpreter executes: --comm NAME" "$ctl" attach --exe "$dir/script"
refuses "attach --exe refuses a file that is no program" 2 "not a program; --comm NAME" "$ctl" attach --exe "$dir/other"
refuses "top --exe refuses a directory" 2 "not a file" "$ctl" top --exe "$dir"
refuses "attach NAME suggests --comm" 2 "'nginx' is not a process id; --comm nginx" "$ctl" attach nginx
refuses "top PATH suggests --exe" 2 "'/bin/sh' is not a process id; --exe /bin/sh" "$ctl" top /bin/sh
if grep -q ' - cgroup2 ' /proc/self/mountinfo; then
	refuses "a cgroup's path needs no slash at its start" 6 "no cgroup /no/such" "$ctl" attach --cgroup no/such
	refuses "a cgroup's path may have a slash at its end" 6 "no cgroup /no/such;" "$ctl" attach --cgroup no/such/
	refuses "a unit without a type is a service" 6 "no unit no-such-unit.service" "$ctl" attach --unit no-such-unit
fi

# What answers at the socket is no profild in order. Each accepts connections until it is killed.
peer() { # TYPE ACTION
	exec {listens}< <(exec python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, getattr(socket, sys.argv[2]))
s.bind(sys.argv[1])
s.listen(5)
print("ready", flush=True)
while True:
    c = s.accept()[0]
    if sys.argv[3] == "talk":
        c.send(b"HTTP/1.1 400 Bad Request\r\n")
    c.close()' "$dir/peer" "$@")
	peer=$!
	read -r -u "$listens" _
}
while read -r type action words; do
	rm -f "$dir/peer"
	peer "$type" "$action"
	refuses "status says: $words" 1 "$words" "$ctl" status -s "$dir/peer"
	kill "$peer"
	wait "$peer" 2>/dev/null
done <<-END
	SOCK_SEQPACKET close has closed the connection before it answered
	SOCK_SEQPACKET talk is of another version, or not profild
	SOCK_STREAM close it is of another type
END

# No daemon runs, and none can be started.
refuses "status fails without a daemon" 5 "no profild answers" "$ctl" status -s "$dir/no-daemon"
refuses "list fails without a daemon" 5 "no profild answers" "$ctl" list -s "$dir/no-daemon"
if test "$(id -u)" -eq 0; then
	cp "$ctl" "$dir/profilctl"
	cat >"$dir/profild" <<-'END'
		#!/bin/sh
		echo "profild: the kernel is out of order" >&2
		exit 1
	END
	chmod 755 "$dir/profild"
	"$dir/profilctl" record -s "$dir/no-daemon" -- true 2>"$dir/stderr"
	check "record returns 125 when its private daemon fails" test $? -eq 125
	check "record shows the messages of a private daemon that fails" grep -q "the kernel is out of order" "$dir/stderr"
	refuses "record without root and without a daemon is refused" 125 "only root can start one" \
		setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$dir/profilctl" record -s "$dir/no-daemon" -- true
else
	refuses "record without root and without a daemon is refused" 125 "only root can start one" \
		"$ctl" record -s "$dir/no-daemon" -- true
fi

daemon_start
check "status shows the daemon's pid" sh -c "$ctl status | grep -q 'pid $daemon,'"
check "list prints a heading" sh -c "$ctl list | grep -q 'unmatched'"
check "list prints only the heading without profiles" test "$("$ctl" list | wc -l)" -eq 1
events=()
test "$(id -u)" -ne 0 || events=("list --events") # tracefs is root's
for what in --help --version "help list" schema status list "list --json" "${events[@]}"; do
	# shellcheck disable=SC2016,SC2086 # another shell's; a verb and its options
	refuses "$what says that standard output has no space" 1 "cannot write standard output: " \
		sh -c '"$@" >/dev/full' - "$ctl" $what
done
check "-s goes before PROFIL_SOCKET" sh -c "PROFIL_SOCKET=/nowhere $ctl status -s '$PROFIL_SOCKET' | grep -q $daemon"
refuses "record returns 127 for a command that does not exist" 127 "cannot run $dir/no-such-command: No such file" \
	"$ctl" record -- "$dir/no-such-command"
refuses "record returns 126 for a file that is not executable" 126 "cannot run $dir/other: Permission denied" \
	"$ctl" record -- "$dir/other"
check "the daemon has no profiles after the refusals" await_status '^profiles +0,'
daemon_stop

# Limits per user. Root is exempt, so the clients run as user nobody.
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
refuses "status reports that the daemon takes no more clients" 1 "too many clients" "${other[@]}" "$ctl" status
kill "$holder"
daemon_stop
daemon_start --user-profiles 1
"${other[@]}" "$ctl" attach -f json --comm bash >"$dir/json" 2>"$dir/stderr" &
one=$!
await_listed attachment "$one"
for verb in "attach -d 0.1 --comm" "top -b -n 1 -i 0.1 --comm"; do
	# shellcheck disable=SC2086 # a verb and its options
	refuses "${verb%% *} reports that there is no room for another attachment" 1 "no room for another attachment" \
		"${other[@]}" "$ctl" $verb bash
done
kill "$one"
wait "$one"

# The kernel cuts names of processes.
python3 -c 'import signal
open("/proc/self/comm", "w").write("a-name-of-15-ch")
print(flush=True)
signal.pause()' >"$dir/named" &
sleeper=$!
await "$sleeper" test -s "$dir/named"
"$ctl" attach -d 0.1 -f json -o "$dir/json" --comm a-name-of-15-characters 2>"$dir/stderr"
check "attach --comm finds a process by a name longer than the kernel's" sh -c "! grep 'no process is named' '$dir/stderr'"
kill "$sleeper"

# A process chooses its name: one that clears the screen.
python3 -c 'import signal
open("/proc/self/comm", "w").write("a\33[2Jb")
signal.pause()' &
sleeper=$!
"$ctl" attach -f json "$sleeper" >"$dir/json" 2>"$dir/stderr" &
one=$!
check "list prints no control character of a process's name" await_listed "^ *$sleeper a \[2Jb .* attachment" "$one"
kill "$one" "$sleeper"
wait "$one"
daemon_stop
finish
