#!/bin/bash
# deps.sh - installs what is missing of the named lists of vendor/packages/
#
# usage: mk/deps.sh [--check] LIST...    with --check it only says, and ends with 1, that something is missing
#
# Before it installs anything it says how many packages and megabytes that is. Without apt-get it names
# what is missing, and the packages of other distributions. No service is started by the installation:
# the tests start their own.
set -u
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

check=
if test "${1:-}" = --check; then
	check=1
	shift
fi
missing=$(mk/missing.sh "${@:?usage: mk/deps.sh [--check] LIST...}")
test "$missing" || exit 0

column() { # NUMBER
	awk -v n="$1" '$n { print $n }' <<<"$missing" | sort -u | tr '\n' ' ' | sed 's/ $//'
}

# "clang, library libbpf, header demangle.h", and the packages of what is only known by them.
what() {
	awk '{ sub(/.*,/, "", $5); print NF < 5 ? $1 : $4 == "tool" ? $5 : $4 " " $5 }' <<<"$missing" | paste -sd, | sed 's/,/, /g'
}

say_missing() {
	if command -v apt-get >/dev/null; then
		echo "make: missing: $(what): run 'sudo make deps' or 'apt-get install $(column 1)'"
	else
		echo "make: missing: $(what)"
		echo "  on Fedora:     dnf install $(awk 'NF == 5 { print $2 }' <<<"$missing" | sort -u | paste -sd' ')"
		echo "  on Arch Linux: pacman -S $(awk 'NF == 5 { print $3 }' <<<"$missing" | sort -u | paste -sd' ')"
		echo "  (the names of these packages were not tested)"
	fi >&2
}

if test "$check" || ! command -v apt-get >/dev/null; then
	say_missing
	exit 1
fi
read -ra packages <<<"$(column 1)"
if test "$(id -u)" -ne 0; then
	echo "make deps: packages are missing, and installing them needs root (sudo make deps): ${packages[*]}" >&2
	exit 1
fi

mkdir -p build
log=build/deps.log

# Prints what apt-get would do, in its own words.
plan() {
	apt-get install --no-install-recommends --assume-no "${packages[@]}" 2>&1
}

planned() {
	planned=$(plan) || grep -q '^After this operation' <<<"$planned"
}

# Another release may lack a package that only some test needs: that test then says so.
leave_out_unknown() {
	local unknown name left=()

	unknown=$(sed -nE "s/^E: (Unable to locate package |Package '|Couldn't find any package by .*')([^ ']+).*/\2/p" <<<"$planned")
	test "$unknown" || return
	for name in "${packages[@]}"; do
		grep -qxF -- "$name" <<<"$unknown" || left+=("$name")
	done
	echo "make deps: this release has no package ${unknown//$'\n'/, }"
	packages=("${left[@]}")
	test ${#packages[@]} -gt 0
}

# A package with a service starts it and enables it for the next boot, but for these two files. A
# policy-rc.d that is there stays as it is.
policy=${DPKG_ROOT:-}/usr/sbin/policy-rc.d preset=${DPKG_ROOT:-}/run/systemd/system-preset/00-profil-deps.preset
made=()
trap 'rm -f "${made[@]}"' EXIT
trap 'exit 130' INT TERM

keep_services_off() {
	if ! test -e "$policy" && ! test -L "$policy"; then
		made+=("$policy")
		printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy"
	fi
	if test -d "${DPKG_ROOT:-}/run/systemd/system" && mkdir -p "${preset%/*}"; then
		made+=("$preset")
		echo 'disable *' >"$preset"
	fi
}

if ! planned; then
	echo "make deps: reading the lists of packages"
	apt-get update -q >"$log" 2>&1
	planned || { leave_out_unknown && planned; } || {
		tail -n 5 "$log" >&2
		grep '^E:' <<<"$planned" >&2
		exit 1
	}
fi
# "Need to get 89.1 MB of archives." is "89.1 MB to fetch"; of what is in apt's cache there is no such line.
fetch=$(sed -nE 's/^Need to get ([^ ]+ [kMG]?B)(\/[^ ]+ [kMG]?B)? of archives\.$/\1 to fetch, /p' <<<"$planned")
disk=$(sed -nE 's/^After this operation, ([^ ]+ [kMG]?B) of additional disk space will be used\.$/\1 on disk/p' <<<"$planned")
count=$(sed -nE 's/^[0-9]+ upgraded, ([0-9]+) newly installed.*/\1/p' <<<"$planned")
echo "make deps: installs ${count:-some} packages, $fetch${disk:-little on disk}, for: ${packages[*]}"
keep_services_off
echo "make deps: apt-get writes to $log"
apt-get install -q -y --no-install-recommends "${packages[@]}" >"$log" 2>&1 || {
	tail -n 30 "$log" >&2
	echo "make deps: apt-get failed: see above and $log" >&2
	exit 1
}
