#!/bin/bash
# machine-stacks.sh - the machine's profile with stacks: its feeder, reports, spool, and the next daemon
# shellcheck disable=SC2016 # what is in quotes is for jq
# shellcheck source=tests/lib/spool.sh
. "$(dirname "$0")/../../lib/spool.sh"

prog=$dir/calls
"${CC:-gcc}" -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -o "$prog" -x c - <<'END' || exit 1
static volatile unsigned long spun;
__attribute__((noipa)) static void hot(void) { for (int i = 0; i < 100000; i++) spun++; }
__attribute__((noipa)) static void outer(void) { hot(); spun++; }
int main(void) { for (;;) outer(); }
END
"$prog" &
busy=$!
keepers+=("$busy")

feed() {
	"$ctl" machine feed 2>>"$dir/feed.log" &
	feeder=$!
	keepers+=("$feeder")
	await "$feeder" fed_by "$feeder"
}

is() { # WORDS WANTED
	test "$1" = "$2" || { echo "$1 instead of $2"; false; }
}

fed_by() { # PID
	"$ctl" machine status --json | jq -e --argjson pid "$1" '.on and .stacks and .feeder == $pid'
}

# True once a stack of the report is main(), outer(), hot().
calls() { # REPORT...
	"$ctl" "$@" -f folded -o "$dir/folded" 2>"$dir/err" && grep -Eq ';main;outer;hot [0-9]' "$dir/folded"
}

daemon_start
"$ctl" machine on -F 200 2>"$dir/on"
check "a profile without stacks cannot be fed" await $$ sh -c "'$ctl' machine feed -d 0.1 2>&1 | grep 'has no stacks'"
check "machine report --callers says how to have stacks" sh -c "'$ctl' machine report --callers hot 2>&1 | grep -F 'machine on -g'"
"$ctl" machine on -g 2>"$dir/on"
check "machine on -g keeps the rate" jq -e -s '.[0] | .on and .stacks and .tick_ns == 5e6 and .feeder == 0' <("$ctl" machine status --json)
check "machine on -g says that the former samples are discarded" grep -q 'is discarded' "$dir/on"
check "machine on -g says that nothing feeds it" grep -q 'machine feed' "$dir/on"
"$ctl" machine on 2>"$dir/on"
check "machine on leaves it as it is" sh -c "! grep -q discarded '$dir/on' && grep -q 'with stacks' '$dir/on'"
check "an ordinary user is not made the feeder" test "$(setpriv --reuid=61201 --clear-groups "$ctl" machine feed 2>&1; echo $?)" = \
	"profilctl: cannot feed the machine's profile: permission denied (run as root)
4"
feed
check "a second feeder is refused and told the first" test "$("$ctl" machine feed 2>&1; echo $?)" = \
	"profilctl: cannot feed the machine's profile: process $feeder does already
1"
check "stacks of a program without frame pointers are whole" await "$busy" calls machine report
check "so are those of the next seconds" await "$busy" calls machine report -d 0.3
check "machine report --tree shows the calls" sh -c "'$ctl' machine report --tree --all | grep -q ' hot$'"
check "machine report --callers shows the calls" sh -c "'$ctl' machine report --callers hot | grep -q ' outer$'"
check "machine report -o writes a profile that is read" sh -c "'$ctl' machine report -d 0.3 -o '$dir/kept' 2>/dev/null && '$ctl' report --tree '$dir/kept'"

# A container, by the name of its cgroup, runs the same program: the stacks tell the two apart.
id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
cgroups=$(findmnt -n -o TARGET -t cgroup2 | head -n 1)
contained=$cgroups$(sed -n 's/^0:://p' /proc/self/cgroup)/docker-$id.scope
in_container() {
	exec sh -c 'echo $$ >"$1/cgroup.procs" && exec "$0"' "$prog" "$contained"
}
resources() { # true once OTLP has the stack in the container, and outside of it
	"$ctl" machine report -d 0.3 -f otlp -o "$dir/otlp" 2>"$dir/err" && /usr/bin/python3 tests/lib/otlp.py owned "$dir/otlp" >"$dir/owned" &&
		grep -q " $id .*main outer hot$" "$dir/owned" && grep '^[0-9]* .*main outer hot$' "$dir/owned" | grep -qv "$id"
}
if mkdir "$contained" 2>/dev/null; then
	in_container &
	inside=$!
	check "--container has the stacks of a container" await "$inside" calls machine report --container "${id:0:12}"
	check "OTLP has the container as the resource of its stacks" await "$inside" resources
	kill "$inside"
	await $$ rmdir "$contained"
else
	skip "--container has the stacks of a container" "no cgroup2 hierarchy"
fi

stacks_of() { # SPOOL
	zcat "$1"/*.json.gz | jq -s '[.[] | select(.tick_ns == 1e7).stacks.samples] | add'
}
latest_calls() {
	calls report "$(find "$dir/short" -name '*Z-*.json.gz' | sort | tail -n 1)"
}
keep "$dir/short" -i 1
short=$keeper
keep "$dir/whole" -i 3600
whole=$keeper
"$ctl" machine on -F 100 2>"$dir/on" # for both a new table from its first sample on
await $$ has_profiles "$dir/short" 3
check "files of the spool have stacks" await "$short" latest_calls

kill -9 "$daemon"
wait "$daemon" 2>/dev/null
daemon_start
check "the feeder feeds the next daemon" await "$feeder" fed_by "$feeder"
"$ctl" machine status --json | jq .started_ns >"$dir/started"
check "the next daemon has whole stacks" await "$busy" calls machine report -d 0.3
n=$(profiles_of "$dir/short")
await $$ has_profiles "$dir/short" $((n + 1))
kill "$feeder"
wait "$feeder"
check "the feeder ends with 0" test $? = 0
check "another process can be the feeder then" await $$ fed_by 0
keepers_end "$short" "$whole"
check "short intervals have as many stacks as a long one" is "$(stacks_of "$dir/short")" "$(stacks_of "$dir/whole")"
kill "$busy"
daemon_stop
finish
