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

# A cgroup named as docker's, in which one of two processes runs.
id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
contained=$group/docker-$id.scope
in_container() { # COMMAND...
	exec sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$contained" "$@"
}

# Whether exactly process PID has samples in a recording of the container NAME.
counts_container() { # PID NAME
	"$ctl" attach -q -d 0.2 -o "$dir/contained" --container "$2" && "$ctl" report -f json -o "$dir/json" "$dir/contained" &&
		test "$(counted)" = "[$1]"
}

if mkdir -p "$contained" 2>/dev/null; then
	in_container "$dir/program" 1000 & inside=$!
	"$dir/program" 1000 & outside=$!
	await "$inside" executes "$inside" "$dir/program"
	check "attach --container counts the processes of a container" await "$inside" counts_container "$inside" 0123456789ab
	total=$(jq .samples.total "$dir/json")
	prints "--by container names it by the first digits of its id" "$total 0123456789ab" \
		sh -c "'$ctl' report --by container '$dir/contained' | awk '\$NF == \"0123456789ab\" { print \$(NF - 2), \$NF }'"
	prints "report --container has all of its samples" "$total" \
		sh -c "'$ctl' report --container docker://$id -f json '$dir/contained' | jq .samples.total"
	prints "report --container refuses another container" "profilctl: report: no samples are of container fedc" \
		"$ctl" report --container fedc "$dir/contained"
	"$ctl" report -f otlp -o "$dir/otlp" "$dir/contained"
	reads protoc "OTLP has the container as a resource" "$total container.id=$id container.runtime.name=docker" sh -c \
		"/usr/bin/python3 tests/lib/otlp.py resources '$dir/otlp' | sed 's/ host.*//'"
	prints "attach --container refuses an unknown one" "profilctl: no container fedc; see systemd-cgls(1)" \
		"$ctl" attach -d 1 --container fedc
	kill "$inside" "$outside"
	await "$daemon" rmdir "$contained"
	rmdir "$group"
else
	skip "attach --container counts the processes of a container" "no cgroup2 hierarchy"
fi

daemon_stop
finish
