#!/bin/bash
# pin.sh - prints vendor/guests anew: what the archive has today of the guests' kernels and of virtme-ng
#
# usage: tests/night/vm/pin.sh >guests.new && mv guests.new vendor/guests
set -u
cd "$(dirname "$0")/../../.." || exit 1

# shellcheck source=tests/night/vm/fetch.sh
. tests/night/vm/fetch.sh

pin() { # SUITE PACKAGE
	vm_apt "$1" apt-cache show --no-all-versions "$2" | awk -v suite="$1" '
		{ field[$1] = $2 }
		END { print suite, field["Package:"], field["Version:"], field["Architecture:"], field["SHA256:"] }'
}

grep '^#' vendor/guests
for suite in bookworm trixie sid; do
	rm -f "$vm_cache/apt/$suite/updated"
	vm_lists "$suite"
	for package in $(vm_kernel_packages "$suite" "linux-image-$(dpkg --print-architecture)" | sort -u); do
		[[ $package == linux-image-[a-z]* ]] || pin "$suite" "$package" # the name that stands for the newest
	done
done
pin trixie virtme-ng
