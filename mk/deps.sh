#!/bin/sh
# deps.sh - installs those of the named Debian packages that are missing
#
# usage: mk/deps.sh PACKAGE...
lacking() {
	for p; do
		# shellcheck disable=SC2016 # dpkg-query's variable
		dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || echo "$p"
	done
}

# shellcheck disable=SC2046 # names of packages
set -- $(lacking "$@")
test $# -gt 0 || exit 0
if test "$(id -u)" -ne 0; then
	echo "make deps: packages are missing, and installing them needs root (sudo make deps): $*" >&2
	exit 1
fi
echo "make deps: installing $*"
export DEBIAN_FRONTEND=noninteractive
apt-get install -s --no-install-recommends "$@" >/dev/null 2>&1 || apt-get update || exit 1
apt-get install -y --no-install-recommends "$@"
