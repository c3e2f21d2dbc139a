#!/bin/bash
# habits.sh - options of perf's record and attach that work here as well
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
daemon_start
for option in '-e cpu-clock' '-e task-clock' '-e cpu-clock:u' '-p'; do
	target=(-o "$dir/profile" true)
	test "$option" != -p || target=($$ -d 0.01 -o "$dir/profile")
	# shellcheck disable=SC2086 # an option and its value
	check "record accepts $option" "$ctl" record $option "${target[@]}"
done
check "record takes options after the first operand as the command's" test \
	"$("$ctl" record -o "$dir/profile" echo -F 0 --by x)" = "-F 0 --by x"
check "attach -p PID,PID attaches to each process" "$ctl" attach -p "$$,$PPID" -d 0.01 -o "$dir/attached"
daemon_stop
finish
