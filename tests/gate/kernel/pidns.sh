#!/bin/bash
# pidns.sh - clients and daemons in pid namespaces
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
spin=$dir/spin
inside=(unshare --pid --fork --mount-proc)
${CC:-gcc} -O2 -g -o "$spin" tests/programs/spin.c -ldl -pthread || exit 1

if ! "${inside[@]}" true 2>"$dir/out"; then
	skip "a client in a pid namespace is served by a daemon outside" "$(cat "$dir/out")"
	finish
fi

# The profile's pid is that of the client's namespace: a small one.
served() {
	"${inside[@]}" "$ctl" record -q -F 999 -f json -o "$dir/json" -- "$spin" split 0.5 || return
	jq -e '.functions[0].name == "hot" and .samples.total > 250 and .pid < 100 and
		([.groups[] | select(.samples > 0).pid] | unique) == [.pid]' "$dir/json"
}

daemon_start
check "a client in a pid namespace is served by a daemon outside" served
daemon_stop

# Runs a daemon and its clients in one pid namespace, in which other programs run on both sides. Nothing is forked while
# it waits for the daemon, so that pids there stay below 100.
mkfifo "$dir/never"
within() { # SCRIPT
	"$spin" split 300 & spinning=$!
	rm -f "$dir/asked" "$dir/used"
	(await "$spinning" test -e "$dir/asked" && await "$spinning" has_used "$spinning" $(($(cpu_ticks_of "$spinning") + 20))
		: >"$dir/used") &
	# shellcheck disable=SC2016 # another shell's
	"${inside[@]}" bash -c '
		"$1/profild" --socket "$2/within" --ephemeral 2>"$2/within.log" & daemon=$!
		export PROFIL_SOCKET=$2/within ctl=$1/profilctl spin=$3 dir=$2 BUILD=$1
		until test -S "$2/within"; do kill -0 $daemon || exit; read -r -t 0.1 <>"$2/never"; done
		until "$ctl" status >/dev/null 2>&1; do kill -0 $daemon || exit; read -r -t 1 <>"$2/never"; done
		eval "$4"; status=$?
		kill $daemon; wait $daemon
		exit $status' - "$BUILD" "$dir" "$spin" "$1"
	set -- $?
	kill "$spinning"
	wait
	return "$1"
}

# shellcheck disable=SC2016 # the shell's of within
{
	check "a daemon in a pid namespace serves profil()" within \
		'"$BUILD/tests/programs/served.linked" some'
	check "a daemon in a pid namespace observes a process and its children" within \
		'"$ctl" record -q -F 999 -f json -o "$dir/json" -- sh -c "$spin split 0.5; $spin split 0.5" &&
		jq -e ".functions[0].name == \"hot\" and .samples.total > 0 and .pid < 100 and
			([.groups[] | select(.samples > 0).pid] | length > 1 and all(. > 0 and . < 100))" "$dir/json"'
	check "a daemon in a pid namespace attaches to a process by its id there" within \
		'"$spin" split 100 & child=$!
		"$ctl" attach -q -F 999 -f json -o "$dir/json" $child & attach=$!
		until test "$("$ctl" list --json | jq "[.profiles[].total] | add // 0")" -ge 1; do read -r -t 0.1 <>"$dir/never"; done
		kill -INT $attach; wait $attach &&
		jq -e ".samples.total > 0 and .functions[0].name == \"hot\" and
			([.groups[] | select(.samples > 0).pid] | unique) == [$child]" "$dir/json"
		status=$?; kill $child; (exit $status)'
	check "a daemon in a pid namespace has no ids for processes outside" within \
		'"$ctl" record -q -a -F 999 -f json -o "$dir/json" -- sh -c ": >$dir/asked; until test -e $dir/used; do :; done" &&
		jq -e ".samples.total > 0 and ([.groups[] | select(.samples > 0).pid] | any(. == 0) and all(. < 100))" "$dir/json"'
}
finish
