#!/bin/sh
# owner.sh - what root's make leaves in build/ belongs to the owner of the tree
#
# usage: mk/owner.sh             prints that user and group where the caller is root and the owner is not
#        mk/owner.sh COMMAND...  runs the command and then gives build/ to the owner
cd "$(dirname "$0")/.." || exit 1

owner=
test "$(id -u)" -ne 0 || owner=$(stat -c %u:%g .)
case $owner in 0:*) owner= ;; esac
if test $# -eq 0; then
	echo "$owner"
	exit
fi
# shellcheck disable=SC2064 # today's owner
trap "test ! -e build || chown -Rh --from=0 '$owner' build" EXIT
trap 'exit 130' INT TERM
"$@"
