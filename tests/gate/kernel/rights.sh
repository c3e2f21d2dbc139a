#!/bin/bash
# rights.sh - the whole machine is for root, group profil and CAP_SYS_PTRACE; others see their own processes
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")
spin=$dir/spin
gid=60100 alice=61201 bob=61202 # they need no entry in /etc/passwd or /etc/group
${CC:-gcc} -O2 -g -o "$spin" tests/programs/spin.c -ldl -pthread || exit 1

needs jq "the whole machine is for those with the right"

printf 'root:x:0:\nprofil:x:%d:\n' $gid >"$dir/group"
chmod 644 "$dir/group"
# shellcheck disable=SC2016 # another shell's
with_group=(unshare --mount sh -c 'mount --bind "$0" /etc/group && exec "$@"' "$dir/group")
if ! "${with_group[@]}" true 2>"$dir/stderr"; then
	skip "the whole machine is for those with the right" "no mount namespace with a group profil: $(cat "$dir/stderr")"
	finish
fi

user=(setpriv --reuid="$alice" --regid="$alice" --clear-groups)
member=(setpriv --reuid="$alice" --regid="$alice" --groups="$gid")
capable=(setpriv --reuid="$alice" --regid="$alice" --clear-groups --inh-caps=+sys_ptrace --ambient-caps=+sys_ptrace)
other=(setpriv --reuid="$alice" --regid="$alice" --clear-groups --inh-caps=+net_admin --ambient-caps=+net_admin)

hot='([.functions[] | select(.name == "hot").samples] | add // 0 > 0)'
only_alices="[.groups[] | select(.samples > 0)] | length > 0 and all(.uid == $alice and .pid > 0)"

json() { # FILTER
	jq -e "$1" "$dir/json" >/dev/null || { jq -c 'del(.objects, .places, .folded, .functions[20:], .groups[20:])' "$dir/json"; cat "$dir/stderr"; false; }
}

# Runs profilctl as $who. JSON goes to $dir/json, messages to $dir/stderr. Of few samples, one that was lost on a busy
# machine is so many that the status is 3; no other loss is accepted.
as() { # ARG...
	"${who[@]}" "$ctl" "$@" >"$dir/json" 2>"$dir/stderr" </dev/null ||
		{ test $? = 3 && test "$(grep -vc 'samples were lost; take a lower rate$' "$dir/stderr")" = 0; } || { cat "$dir/stderr"; return 1; }
}

# True once the JSON of ARG... fulfils FILTER: the processes may have had no CPU while profilctl ran.
gets() { # FILTER ARG...
	while as "${@:2}" || return 1; do
		! jq -e "$1" "$dir/json" >/dev/null || return 0
	done
}

# The processes that use CPU time all the while: one of root, one of alice, one of bob.
declare -A busy
begin() { # NAME PREFIX...
	"${@:2}" "$spin" split 1000 &
	busy[$1]=$!
	await "${busy[$1]}" executes "${busy[$1]}" "$spin"
}

# The pids of the busy processes that have samples, sorted.
seen() {
	jq -c --argjson ours "$(pids root alice bob)" '[.groups[] | select(.samples > 0 and (.pid | IN($ours[]))).pid] | sort' "$dir/json"
}

pids() { # NAME...
	for name; do echo "${busy[$name]}"; done | sort -n | jq -sc .
}

is() { # WORD WORD
	test "$1" = "$2" || { echo "$1, not $2"; cat "$dir/stderr"; return 1; }
}

silent_about() { # PATTERN
	! grep "$1" "$dir/stderr"
}

# The command that record runs ends when each busy process has used a fifth of a second.
used_by_all() {
	local name

	for name in root alice bob; do
		await "${busy[$name]}" has_used "${busy[$name]}" $(($(cpu_ticks_of "${busy[$name]}") + 20))
	done
}

whole_machine() { # CLIENT
	rm -f "$dir/spool/asked" "$dir/used"
	(await $$ test -e "$dir/spool/asked" && used_by_all; : >"$dir/used") &
	# shellcheck disable=SC2016 # another shell's
	check "$1 records the whole machine" as record -a -F 999 -f json -o - -- sh -c ': >"$1/spool/asked"; until test -e "$1/used"; do :; done' - "$dir"
	check "record -a of $1 has the processes of every user" is "$(seen)" "$(pids root alice bob)"
	check "record -a tells $1 of no limit to its own processes" silent_about 'your own processes'
	check "$1 attaches to every process" gets '[.groups[] | select(.samples > 0)] | length > 0' attach -a -d 0.2 -F 999 -f json -o -
	check "$1 runs top for the whole machine, with all three processes" gets ".processes >= 3 and $hot" top -a -b -n 1 -i 0.5 --json

	check "$1 turns the machine's profile on" as machine on -F 200
	check "$1 asks for the state of the machine's profile" as machine status --json
	check "the machine's profile is on for $1" json '.on and .tick_ns == 5000000'
	check "$1 reads the machine's profile, with samples of a program" gets "$hot" machine report -d 0.2 -f json
	check "$1 runs top for the machine's profile, with samples of a program" gets "$hot" machine top -b -n 1 -i 0.5 --json
	check "$1 compares times of the machine's profile" as machine diff -d 0.5 -f json
	check "$1 keeps the machine's profile in a spool" as machine spool -i 1 -d 2 "$dir/spool"
	check "the spool of $1 has a file" sh -c "ls '$dir'/spool/machine-*.json.gz"
	check "$1 turns the machine's profile off" as machine off
	check "the machine's profile of $1 is off" is "$("${who[@]}" "$ctl" machine status --json | jq .on)" false
	rm -rf "$dir/spool"
	mkdir -m 777 "$dir/spool"
}

# ok when profilctl, run as $who, is denied this. For a spool there is no substitute.
denied() { # ARG...
	local advice="; 'profilctl record -a' and 'top -a' profile your own processes"

	test "$1" != spool || advice=
	"${who[@]}" "$ctl" machine "$@" >"$dir/out" 2>"$dir/stderr" </dev/null
	is "status $?" "status 4" && is "$(cat "$dir/out")" '' && is "$(cat "$dir/stderr")" \
		"profilctl: the machine's profile: permission denied (run as root, or join group profil$advice)"
}

own_only() { # CLIENT
	local ask

	"$ctl" machine on -F 200 2>"$dir/stderr"
	for ask in on off status report "report -d 0.1" "top -b -n 1" diff "spool -d 1 $dir/spool"; do
		# shellcheck disable=SC2086 # an operand and its options
		check "$1 is denied machine $ask" denied $ask
	done
	check "the machine's profile is still on then" is "$("$ctl" machine status --json | jq -c '[.on, .tick_ns]')" '[true,5000000]'
	"$ctl" machine off

	check "$1 records its own processes by record -a" gets "$alices" record -a -d 0.2 -F 999 -f json -o -
	check "record -a of $1 has no process of another user" is "$(seen)" "$(pids alice)"
	check "record -a of $1 has no group of another user, and no kernel thread" json "$only_alices"
	check "record -a tells $1 that it is limited to its own processes" grep -qx \
		'profilctl: only your own processes are observed (run as root, or join group profil, for the whole machine)' "$dir/stderr"
	check "the profile of $1 is named after its user" json ".command == \"all processes of user $alice\""
	check "$1 attaches to its own processes by attach -a" gets "$alices" attach -a -d 0.2 -F 999 -f json -o -
	check "attach -a of $1 has no process of another user" is "$(seen)" "$(pids alice)"
	check "$1 runs top for its own processes" gets "$hot" top -a -b -n 1 -i 0.5 --json
	check "top -a of $1 has no process of another user" json "$only_alices"
}

mkdir -m 777 "$dir/spool"
under=("${with_group[@]}")
daemon_start
under=()
begin root
begin alice "${user[@]}"
begin bob setpriv --reuid="$bob" --regid="$bob" --clear-groups
alices=".groups | any(.samples > 0 and .pid == ${busy[alice]})"
who=("${member[@]}")
whole_machine "a member of group profil"
who=("${capable[@]}")
whole_machine "a process with CAP_SYS_PTRACE"
who=("${user[@]}")
own_only "a user"
who=("${other[@]}")
own_only "a process with another capability"
kill "${busy[@]}"
wait "${busy[@]}" 2>/dev/null
daemon_stop
finish
