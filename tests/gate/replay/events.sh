#!/bin/bash
# events.sh - profiles whose samples are of events, and not of time, in every format
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl

# Makes $dir/NAME and $dir/NAME.flat of samples of an event, with stacks and without.
events() { # NAME PERIOD
	tests/programs/stacks.py "$dir/time" && python3 -c '
import json, sys
path, period = sys.argv[1:]
p = {**json.load(open(path + "/time")), "event": "cache-misses", "period": int(period), "tick_ns": 0}
name = "frequent" if period == "0" else "counted"
json.dump(p, open(f"{path}/{name}", "w"))
del p["stacks"]
json.dump(p, open(f"{path}/{name}.flat", "w"))' "$dir" "$1"
}

check "a profile of a period is made" events 1000
check "a profile of a frequency is made" events 0

# The types of the values, and the sums of them.
pprof() { # PROFILE
	"$ctl" report -f pprof -o "$dir/pprof" "$1" && go tool pprof -raw "$dir/pprof" 2>/dev/null | awk '
		/^samples\/count/ { print }
		/^Samples:/ { on = 1 } /^Locations/ { on = 0 }
		on && $1 + 0 { n = split($0, part, ":"); split(part[1], value, " "); sum += value[1]; all += value[2] }
		END { print sum, all + 0 }'
}

for kind in counted counted.flat; do
	reads go "pprof has the events of $kind" $'samples/count cache-misses/count[dflt]\n7950 7950000' pprof "$dir/$kind"
done
for kind in frequent frequent.flat; do
	reads go "pprof has only samples of $kind, whose events are unknown" $'samples/count\n7950 0' pprof "$dir/$kind"
done

# The name and the sum of the events. Of a frequency a sample counts as one.
perf_events() { # PROFILE
	"$ctl" report -f perf -o "$dir/perf" "$1" && perf script -i "$dir/perf" -F event,period 2>/dev/null |
		awk '{ sum += $1; name = $2 } END { print name, sum }'
}

for kind in counted counted.flat; do
	reads perf "perf has the events of $kind" "cache-misses: 7950000" perf_events "$dir/$kind"
done
reads perf "perf has the samples of frequent" "cache-misses: 7950" perf_events "$dir/frequent"

# A function that was compiled at run time has no file, where perf could find its name.
named() {
	sed 's/\[null, 1, 1099511627776\]/["compiled;it", 1, 1099511627776]/' "$dir/time" >"$dir/named" &&
		"$ctl" report -f perf -o "$dir/perf" "$dir/named" &&
		perf script -i "$dir/perf" -F ip,sym,dso 2>/dev/null | sed -n 's/.*unknown. (\(.*compiled.*\))/\1/p'
}

processes() {
	tests/programs/stacks.py "$dir/groups" groups && sed -i 's/"stacks"/"no stacks"/' "$dir/groups" &&
		"$ctl" report -f perf -o "$dir/perf" "$dir/groups" &&
		perf script -i "$dir/perf" -F comm,pid,period 2>/dev/null | awk '{ n[$1 " " $2] += $3 / 1000000 } END { for (p in n) print p, n[p] }' | sort
}

reads perf "perf shows a function without a file by its name" '[compiled;it]' named
reads perf "perf has the samples of each process" $'one 1 7870\nspin 1 5\ntwo 2 75' processes

# The types of the value and of the period, and the period; 0: unknown, or the time asleep.
otlp() { # PROFILE
	"$ctl" report -f otlp -o "$dir/otlp" "$1" && /usr/bin/python3 tests/lib/otlp.py types "$dir/otlp" &&
		/usr/bin/python3 tests/lib/otlp.py total "$dir/otlp"
}

check "a profile of sleeps is made" python3 -c '
import json, sys
p = {**json.load(open(sys.argv[1])), "event": "off-cpu", "period": 1000000, "tick_ns": 1000000}
json.dump(p, open(sys.argv[2], "w"))' "$dir/time" "$dir/asleep"
reads protoc "OTLP has the events" $'1 samples count cache-misses count 1000\n7950' otlp "$dir/counted"
reads protoc "OTLP has samples of unknown events" $'1 samples count cache-misses count 0\n7950' otlp "$dir/frequent.flat"
reads protoc "OTLP has the time asleep" $'1 off_cpu nanoseconds off_cpu nanoseconds 0\n7950000000' otlp "$dir/asleep"

speedscope() { # PROFILE
	"$ctl" report -f speedscope "$1" | python3 -c '
import json, sys
one = json.load(sys.stdin)["profiles"][0]
print(one["unit"], sum(one["weights"]), one["endValue"])'
}

for kind in counted frequent.flat; do
	prints "speedscope has the samples of $kind" "none 7950 7950" speedscope "$dir/$kind"
done
prints "speedscope has the nanoseconds of time" "nanoseconds 7950000000 7950000000" speedscope "$dir/time"
for kind in counted frequent; do
	prints "HTML has no seconds of $kind" 0 sh -c "'$ctl' report -f html '$dir/$kind' | grep -c 'class=\"seconds\"'"
	prints "diff has no seconds of $kind" 0 sh -c "'$ctl' diff -f html '$dir/$kind' '$dir/$kind' | grep -c 'class=\"seconds\"'"
done
prints "HTML has seconds of time" 2 sh -c "'$ctl' report -f html '$dir/time' | grep -oc '<th class=\"seconds\">\|do_it.*seconds\|seconds.*do_it'"
prints "gmon refuses events" "profilctl: cannot write $dir/none: the format is for samples of time, and these are of events (try -f pprof)" \
	"$ctl" report -f gmon -o "$dir/none" "$dir/counted"
check "gmon takes time" "$ctl" report -f gmon -o "$dir/gmon" "$dir/time"
latency() {
	jq '.event = "latency" | .period = .tick_ns' "$dir/time" >"$dir/latency" && "$ctl" report -f gmon -o "$dir/gmon" "$dir/latency" &&
		gprof -b -p "$BUILD/profilctl" "$dir/gmon" | sed -n 's/Each sample counts as [0-9.e+]* \(.*\)/\1/p'
}
reads gprof "gprof says that samples are of latency" "latency seconds." latency
check "no file is written then" test ! -e "$dir/none"

# The kernel has no addresses for a user without the right: all of it is at offset 0, and has no name.
check "a profile without kernel addresses is made" python3 -c '
import json, sys
p = json.load(open(sys.argv[1]))
p["stacks"]["frames"][4] = [None, 2, 0]
for node in p["stacks"]["nodes"]:
    if node[1] == 4: node[3] = 0
json.dump(p, open(sys.argv[2], "w"))' "$dir/time" "$dir/hidden"
prints "a kernel without addresses has its name in stacks" 'spin;main;hot;[kernel] 40' sh -c "'$ctl' report -f folded '$dir/hidden' | grep kernel"
prints "--callers finds a kernel without addresses" '[kernel]' \
	sh -c "'$ctl' report --callers '[kernel]' '$dir/hidden' | awk '/ % .*.kernel.\$/ { print \$NF }'"

# The ends of the addresses of main and hot. Samples are at 0x104 and 0x10c, return addresses at 0x14, 0x108, 0x10c and 0x110.
addresses() {
	go tool pprof -raw "$dir/time.pprof" 2>/dev/null | awk '/^Locations/ { on = 1 } /^Mappings/ { on = 0 }
		on && /0x.* (hot|main) / { print substr($2, length($2) - 2), $4 }' | sort -u
}

check "report writes pprof" "$ctl" report -f pprof -o "$dir/time.pprof" "$dir/time"
reads go "pprof has the address of a call, and not the return address behind it" $'013 main\n104 hot\n107 hot\n10b hot\n10c hot\n10f hot' addresses
finish
