#!/bin/bash
# attacks.sh - attacks under the real unit, by one user beside a victim of another
#
# To be sourced after lib.sh, by what has the functions of service.sh. What START takes is only shown: an emulated
# machine's times say nothing.

: "${dir:?}"
ATTACKER=60001
VICTIM=60020
ATTACK_S=5 # of the victim's, in which the watchdog of a daemon that stands still would run out

as_uid() { # UID COMMAND...
	setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"
}

descriptors() {
	find "/proc/$(show MainPID)/fd" -mindepth 1 2>/dev/null | wc -l
}

few_descriptors() { # MOST
	test "$(descriptors)" -le "$1"
}

value() { # NAME FILE
	awk -v name="$1" '$1 == name { n = $2 } END { print n + 0 }' "$2"
}

# Prints what an attack has cost the victim; the status is 0 when that is no more than time.
cost() {
	local s=$dir/samples binned total

	binned=$(($(value binned "$s") + $(value unmatched "$s") + $(value lost "$s"))) total=$(value total "$s")
	printf 'START p50 %d p99 %d max %d us, %d of %d refused; %d of %d samples lost\n' \
		"$(value start_p50 "$dir/starts")" "$(value start_p99 "$dir/starts")" "$(value start_max "$dir/starts")" \
		"$(value refused "$dir/starts")" "$(value starts "$dir/starts")" "$(value lost "$s")" "$total"
	test "$(value starts "$dir/starts")" -gt 0 && test "$total" -gt 0 && test "$total" -eq "$binned" &&
		test "$(($(value refused "$dir/starts") + $(value refused "$s") + $(value lost "$s")))" -eq 0
}

# The victim's two halves, beside an attack that is under way.
victim_lives() {
	local samples

	as_uid $VICTIM "$BUILD/tests/night/hostile/victim" samples $ATTACK_S >"$dir/samples" &
	samples=$!
	as_uid $((VICTIM + 1)) "$BUILD/tests/night/hostile/victim" starts $ATTACK_S >"$dir/starts"
	wait $samples
}

# Root prepares FUSE mounts, and becomes the attacker.
attacker() { # PROGRAM ARGS...
	local as=(as_uid "$ATTACKER")

	case $1 in fuse | connections) as=() ;; esac
	"${as[@]}" "$BUILD/tests/night/hostile/$1" "${@:2}"
}

# Of N processes as many as leave room for others: in a small machine, and in this unit (TasksMax=).
fewer() { # N
	local least=$1 most unit

	unit=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
	while read -r most; do
		test "$most" = max || least=$((least < most / 4 ? least : most / 4))
	done < <(cat /proc/sys/kernel/threads-max "$unit/pids.max" 2>/dev/null)
	echo "$least"
}

attack() { # PROGRAM ARGS...
	local restarts gate pid before said

	restarts=$(show NRestarts) before=$(descriptors)
	rm -f "$dir/gate" && mkfifo "$dir/gate"
	attacker "$@" <"$dir/gate" >"$dir/attack" 2>&1 &
	pid=$!
	exec {gate}>"$dir/gate"
	await 120 grep -Eq '^(under way|skip)' "$dir/attack"
	victim_lives
	exec {gate}>&-
	wait $pid
	if grep -q '^skip' "$dir/attack"; then
		skip "attack: $*" "$(cat "$dir/attack")"
		return
	fi
	said=$(cost)
	check "no request and no sample of a user is lost beside an attack: $*: $said" cost
	check "the daemon is not restarted beside $1" test "$(show NRestarts):$(show ActiveState)" = "$restarts:active"
	check "the daemon keeps no descriptor of $1" await 60 few_descriptors "$before"
}

attacks() {
	runs_right as_uid $VICTIM "$BUILD/tests/programs/split.linked" >/dev/null
	for command in "$@"; do
		case $command in "children "*) command="children $(fewer "${command#* }")" ;; esac
		# shellcheck disable=SC2086 # words
		attack $command
	done
}
