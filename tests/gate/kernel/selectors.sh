#!/bin/bash
# selectors.sh - attach --exe and --cgroup of what is replaced before or during the recording
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
spin=$BUILD/tests/programs/split

daemon_start

replace() {
	cp "$spin" "$dir/copy"
	mv "$dir/copy" "$dir/program"
}

# Prints the processes that have samples in $dir/json.
counted() {
	jq -c '[.groups[] | select(.samples > 0) | .pid] | unique' "$dir/json"
}

# A recording in which exactly the processes PIDS have samples.
counts() { # PIDS
	"$ctl" attach -q -d 0.2 -f json -o "$dir/json" --exe "$dir/program" && test "$(counted)" = "$1"
}

replace
"$dir/program" 1000 & first=$!
await "$first" executes "$first" "$dir/program"
replace
"$dir/program" 1000 & second=$!
await "$second" executes "$second" "$dir/program"
check "attach --exe counts processes of the file and of the one before it" \
	await "$first" counts "$(printf '%s\n' "$first" "$second" | sort -n | jq -sc .)"
"$ctl" attach -d 0.1 -f json -o "$dir/json" --exe "$dir/program" 2>"$dir/stderr"
check "attach --exe says that the file was another one before" \
	grep -q '^profilctl: 1 process executes the file that was .* before: profiled as well$' "$dir/stderr"

"$ctl" attach -d 1000 -f json -o "$dir/json" --exe "$dir/program" 2>"$dir/stderr" & attach=$!
await_listed "[(]file[)]" "$attach"
replace
kill -INT "$attach"
wait "$attach"
check "attach --exe returns 3 when the file is replaced during the recording" test $? -eq 3
check "attach --exe says that the file was replaced" \
	grep -q 'program was replaced during the recording: its new processes are not in the profile' "$dir/stderr"
kill "$first" "$second"

# A cgroup that is removed and made again, as at the restart of a service, is another one.
cgroups=$(findmnt -n -o TARGET -t cgroup2 | head -n 1)
group=$cgroups$(sed -n 's/^0:://p' /proc/self/cgroup)/profil-selectors.$$
if mkdir "$group" 2>/dev/null; then
	"$ctl" attach -d 1000 -f json -o "$dir/json" --cgroup "${group#"$cgroups"}" 2>"$dir/stderr" & attach=$!
	await_listed "[(]cgroup[)]" "$attach"
	rmdir "$group"
	mkdir "$group"
	kill -INT "$attach"
	wait "$attach"
	check "attach --cgroup returns 3 when the cgroup is replaced during the recording" test $? -eq 3
	check "attach --cgroup says that the cgroup was replaced" grep -q 'was replaced during the recording' "$dir/stderr"
	rmdir "$group"
else
	skip "attach --cgroup returns 3 when the cgroup is replaced during the recording" "no cgroup2 hierarchy"
fi

daemon_stop
finish
