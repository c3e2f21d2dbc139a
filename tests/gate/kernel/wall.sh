#!/bin/bash
# wall.sh - record --wall: all time of threads is counted once, in one of three states
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")

# Each sample is in one state, and the views of the states add up to the profile.
adds_up() { # PROFILE
	local all states

	all=$("$ctl" report -f json "$1" | jq .samples.total)
	states=$(for state in running runnable asleep; do
		"$ctl" report -f json --state "$state" "$1" 2>/dev/null | jq .samples.total
	done | awk '{ n += $1 } END { print n + 0 }')
	test "$states" = "$all" && test "$("$ctl" report -f folded "$1" | awk '{ n += $NF } END { print n }')" = "$all" && return
	echo "$states of $all samples have a state"
	false
}

through() { # STATE FUNCTION PROFILE
	"$ctl" report -f folded "$3" | grep -qE "(^|;)\[$1[],].*;$2[; ]"
}

# A thread that waits for input waits for at least a sample's time, and it is never on the CPU meanwhile.
record_waits() {
	"$ctl" record -q --wall -o "$dir/kept" -- "$dir/waits" >/dev/null
}

# The samples of the loop come sooner or later.
has_run() {
	while record_waits; do
		through "on CPU" compute "$dir/kept" && return
	done
	false
}

daemon_start
check "waits.c is built" "${CC:-gcc}" -O2 -fno-optimize-sibling-calls -pthread -o "$dir/waits" tests/programs/waits.c
check "a loop is on the CPU" has_run
for function in wait_for_lock wait_for_time wait_for_input; do
	check "$function() is asleep" through asleep "$function" "$dir/kept"
done
check "the states add up" adds_up "$dir/kept"

# Sleeps below FUNCTION are of KIND. Its first steps can wait for a page, or for the lock of the mappings.
sleeps_for() { # FUNCTION KIND
	python3 - "$dir/kept" "$@" <<-'END'
		import json, sys
		stacks = json.load(open(sys.argv[1]))["stacks"]
		frames, nodes, roots = stacks["frames"], stacks["nodes"], len(stacks["ends"])
		def below(node):
		    while node >= roots:
		        parent, frame = nodes[node - roots][:2]
		        if frames[frame][0] == sys.argv[2]:
		            return True
		        node = parent
		kinds = {wake[3] for wake in stacks["wakes"] if below(wake[0])}
		print(sys.argv[2], kinds)
		sys.exit(sys.argv[3] not in kinds or bool(kinds - {sys.argv[3], "disk", "fault", "mmap lock", "kernel lock"}))
	END
}
for pair in lock:futex own_lock:futex time:timer input:pipe poll:poll epoll:poll socket:socket event:event process:process \
	signal:signal condition:futex inversion:futex file_lock:"file lock" semaphore:ipc; do
	check "wait_for_${pair%:*}() sleeps for a ${pair#*:}" sleeps_for "wait_for_${pair%:*}" "${pair#*:}"
done

by() { # WHAT PROFILE
	"$ctl" report --by "$1" -a "$2" | sed -nE 's/^ *[0-9.]+ % +[0-9]+ +[0-9.]+ +//p' >"$dir/rows"
	cat "$dir/rows"
}
check "a lock is named by its variable" grep -qxF "lock in waits" <(by lock "$dir/kept")
check "a lock that one of lower priority holds is named by its variable" grep -qxF "inverted in waits" "$dir/rows"
check "a sleep in a coroutine has the stack of the coroutine" through asleep wait_in_coroutine "$dir/kept"
check "a lock in allocated memory is named by its caller" grep -qxF "futex, waited for in wait_for_own_lock" "$dir/rows"
sums() { # WHAT
	"$ctl" report --by "$1" -a "$dir/kept" | awk '/^ *[0-9.]* % +[0-9]+ / { n += $3 } / samples: / { all = $1 } END { print n, all; exit n != all }'
}
check "rows by wait add up" sums wait
check "rows by lock add up" sums lock
check "off-CPU time with stacks is recorded" "$ctl" record -q --off-cpu -g -o "$dir/off" -- "$dir/waits" >/dev/null
check "off-CPU time knows locks" grep -qxF "lock in waits" <(by lock "$dir/off")

# Each stack's samples are in some slice, those of a sleep in all slices that it lasts.
in_slices() { # OPTION...
	"$ctl" record -q "$@" -o "$dir/sliced" -- "$dir/waits" >/dev/null && python3 - "$dir/sliced" <<-'END'
		import json, sys
		p = json.load(open(sys.argv[1]))
		stacks = p["stacks"]
		left = [end["without_frame"] for end in stacks["ends"]] + [node[4] for node in stacks["nodes"]]
		for slice in stacks["times"]:
		    for node, n in zip(slice[::2], slice[1::2]):
		        left[node] -= n
		for f in p["functions"]:
		    assert sum(f["slices"]) <= f["samples"] and len(f["slices"]) == len(stacks["times"]), f
		print(len(stacks["times"]), [n for n in left if n])
		sys.exit(any(left) or len(stacks["times"]) > 8)
	END
}
check "the slices of stacks add up" in_slices -F 1000 --slices 8x0.01
check "the slices of all time add up" in_slices --wall --slices 8x0.01
check "the slices of off-CPU time add up" in_slices --off-cpu --slices 8x0.01
check "the slices of threads add up" in_slices --wall --threads --slices 8x0.01

# A thread's stacks have the samples of its places.
has_threads() {
	python3 - "$dir/sliced" <<-'END'
		import collections, json, sys
		p = json.load(open(sys.argv[1]))
		stacks, groups = p["stacks"], [f"{g['thread']} ({g['tid']})" for g in p["groups"]]
		roots, threads = len(stacks["ends"]), next(i for i, o in enumerate(p["objects"]) if o["path"] == "thread")
		of, flat, tree = {}, collections.Counter(), collections.Counter()
		for i, (parent, frame, object, _, count) in enumerate(stacks["nodes"], roots):
		    of[i] = stacks["frames"][frame][0] if parent < roots and object == threads else of.get(parent)
		    tree[of[i]] += count if object != threads else 0
		for _, _, _, count, group in p["places"]:
		    flat[groups[group]] += count
		print(flat, tree)
		sys.exit(+flat != +tree or len(flat) < 10)
	END
}
check "a thread's stacks have its samples" has_threads

sleep 1000 &
sleeper=$!
await "$sleeper" grep -q "^$sleeper (sleep) S" "/proc/$sleeper/stat"
check "a thread that does not run is attached to" "$ctl" attach --wall -d 1 -o "$dir/quiet" "$sleeper"
check "a thread that does not run is asleep" test "$("$ctl" report -f folded "$dir/quiet" | sed 's/ [0-9]*$//')" = \
	'sleep;[asleep, cut: unreadable stack]'
check "the states of a thread that does not run add up" adds_up "$dir/quiet"
kill "$sleeper"

# --- wakers -----------------------------------------------------------------------------------------

# Each sleep of WAIT was ended by GIVE: no other stack has woken it up.
woken_by() { # WAIT GIVE PROFILE
	"$ctl" report --wakers "$1" -a --full-names "$3" >"$dir/text" || return
	cat "$dir/text"
	grep -q " $2\$" "$dir/text" && ! grep ' give_' "$dir/text" | grep -qv " $2\$"
}

check "wakers.c is built" "${CC:-gcc}" -O1 -fno-optimize-sibling-calls -pthread -o "$dir/wakers" tests/programs/wakers.c
check "wakers are recorded" "$ctl" record -q --wakers -o "$dir/woken" -- "$dir/wakers"
for what in lock condition pipe; do
	check "what waits on a $what is woken up by what gives it" woken_by "wait_on_$what" "give_$what" "$dir/woken"
done
# What the interrupt interrupts, a system call of read_zeros(), has not woken anything up.
woken_by_interrupt() {
	"$ctl" report --wakers wait_on_timer -a --full-names "$dir/woken" >"$dir/text" || return
	cat "$dir/text"
	grep -q ' \[interrupt\]$' "$dir/text" && ! grep -q ' read_zeros$' "$dir/text"
}
check "a timer's interrupt during a system call is what wakes up" woken_by_interrupt
check "a lock is known with what gave it" grep -qxF "lock in wakers, given by give_lock" <(by lock "$dir/woken")
check "a condition is known with what gave it" grep -qxF "condition in wakers, given by give_condition" "$dir/rows"
check "chains have all samples" test "$("$ctl" report --chains -f folded "$dir/woken" | awk '{ n += $NF } END { print n }')" = \
	"$("$ctl" report -f json "$dir/woken" | jq .samples.total)"

refused() { # WORDS OPTION...
	"$ctl" "${@:2}" 2>"$dir/err"
	test $? -eq 2 && grep -q -e "$1" "$dir/err"
}
check "--user-only is refused" refused "leave out --user-only" record --wall --user-only -- true
check "a second event is refused" refused "there is another event" record --wall -e page-faults -- true

# As an ordinary user, without the kernel's addresses.
unprivileged() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$ctl" record -q --wall -f folded -o - -- "$dir/waits" >"$dir/folded" 2>"$dir/err" ||
		{ cat "$dir/err"; false; }
}
chmod 755 "$dir" "$dir/waits"
check "an ordinary user records all time" unprivileged
check "an ordinary user's threads are asleep where they wait" grep -q '\[asleep\];.*;wait_for_input' "$dir/folded"

# A thread that root's process wakes up: its user may not see that process's stack.
hidden() {
	local record

	mkfifo "$dir/fifo"
	exec 9<>"$dir/fifo"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$ctl" record -q --wakers -F 1000 -o - -- head -c 1 <"$dir/fifo" >"$dir/hidden" 2>"$dir/err" &
	record=$!
	await "$record" reads_fifo "$record"
	echo >&9
	exec 9>&-
	wait "$record" || { cat "$dir/err"; return 1; }
	"$ctl" report --chains -f folded "$dir/hidden" >"$dir/folded"
	cat "$dir/folded"
	grep -qF '[woken by];[not permitted]' "$dir/folded" && ! grep -F '[woken by]' "$dir/folded" | grep -q bash
}
reads_fifo() { # PID: a descendant of it is head, asleep
	local pid

	for pid in $(pgrep -x head); do
		grep -q "(head) S" "/proc/$pid/stat" && test "$(stat -Lc %i "/proc/$pid/fd/0")" = "$(stat -c %i "$dir/fifo")" && return
	done
	false
}
check "wakers of another user are not shown" hidden
daemon_stop
finish
