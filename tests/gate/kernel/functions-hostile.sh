#!/bin/bash
# functions-hostile.sh - a process that lies about its functions, and names that others must not see
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")
program=$dir/false_python
gid=60100 alice=61201 bob=61202 # they need no entry in /etc/passwd or /etc/group
${CC:-gcc} -O1 -rdynamic -o "$program" tests/programs/false_python.c -pthread || exit 1
chmod 755 "$dir"

printf 'root:x:0:\nprofil:x:%d:\n' $gid >"$dir/group"
chmod 644 "$dir/group"
# shellcheck disable=SC2016 # another shell's
with_group=(unshare --mount sh -c 'mount --bind "$0" /etc/group && exec "$@"' "$dir/group")
if ! "${with_group[@]}" true 2>"$dir/stderr"; then
	skip "false functions" "no mount namespace with a group profil: $(cat "$dir/stderr")"
	finish
fi
under=("${with_group[@]}")
daemon_start
under=()

export FALSE_NAME=a_visible_name
for how in true cycle negative huge wild rewritten exec; do
	check "record -g outlives frames of the kind $how" "$ctl" record -q -g -F 499 -f json -o "$dir/json" -- "$program" $how
	check "samples of frames of the kind $how add up" jq -e \
		'.samples | .total > 0 and .total == .binned + .unmatched + .lost' "$dir/json"
	test $how != true || check "the program's frames are read" jq -e \
		'any(.functions[]; .object == "python" and .name == "a_visible_name" and .samples > 0)' "$dir/json"
done

# Bob's frames have a name that only root and Bob may see: the name is in memory that others may not read.
canary=canary_$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
sees() { # COMMAND...: attaches by it to a process of bob's, until that has ended
	FALSE_NAME=$canary setpriv --reuid="$bob" --regid="$bob" --clear-groups "$program" true 2 &
	"$@" "$ctl" attach -g -F 499 -f json $! >"$dir/json" 2>"$dir/stderr"
	wait $!
	grep -q "$canary" "$dir/json" "$dir/stderr"
}
sees_not() { # COMMAND...
	! sees "$@" && jq -e '.samples.total > 0' "$dir/json"
}
check "root sees another user's name" sees env
check "a member of group profil gets samples of another user's process without names in its memory" \
	sees_not setpriv --reuid="$alice" --regid="$alice" --groups="$gid"
check "the owner of the process sees the name" sees setpriv --reuid="$bob" --regid="$bob" --clear-groups
finish
