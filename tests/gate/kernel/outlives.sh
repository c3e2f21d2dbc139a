#!/bin/bash
# outlives.sh - record of a command that ends before what it has started
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl

daemon_start

# The command leaves a process that writes its pid to a fifo and reads another one.
mkfifo "$dir/ready" "$dir/hold"
cat >"$dir/leave" <<-END
	#!/bin/sh
	setsid sh -c 'echo \$\$ >"$dir/ready"; read -r line <"$dir/hold"' >/dev/null 2>&1 &
	read -r pid <"$dir/ready"
	echo "\$pid" >"$dir/pid"
	exit 4
END
chmod +x "$dir/leave"
"$ctl" record -o "$dir/json" -f json -- "$dir/leave" >"$dir/out" 2>"$dir/err"
check "record ends with the command's status, though a process of it runs on" test $? -eq 4
pid=$(cat "$dir/pid")
check "record names the process that runs on" grep -q "1 process that the command started runs on: pid $pid\. " "$dir/err"
check "the process runs on" kill -0 "$pid"
echo >"$dir/hold"

# With a duration the recording continues until the last process has ended. Each prints its CPU time.
# shellcheck disable=SC2016 # another shell's
cat >"$dir/work" <<-'END'
	import os, time
	while time.process_time() < 0.05: pass
	print(time.process_time_ns())
END
"$ctl" record -d 1000 -o "$dir/json" -f json -- \
	sh -c "for i in 1 2 3; do (setsid sh -c 'python3 $dir/work >$dir/used.\$0' \$i &) ; done" >"$dir/out" 2>"$dir/err"
check "record -d ends when all processes of the command have ended" test $? -eq 0
check "all of them have ended" test -s "$dir/used.1" -a -s "$dir/used.2" -a -s "$dir/used.3"
check "nothing is said to run on" sh -c "! grep -q 'on: pid' '$dir/err'"
used=$(cat "$dir"/used.* | awk '{ s += $1 } END { print s }')
check "the CPU time includes processes that have not been waited for" jq -e ".cpu_ns >= $used - 30000" "$dir/json"
check "the CPU time of a wide scope is not that of the command" sh -c \
	"$ctl record -a -q -o '$dir/json' -f json -- sh -c : && jq -e '.cpu_ns == 0' '$dir/json'"

daemon_stop
finish
