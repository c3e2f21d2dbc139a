#!/bin/sh
# packages.sh - prints the Debian packages of the named lists, for this machine's architecture
#
# usage: vendor/packages.sh LIST...    a LIST is a file in vendor/packages/
arch=$(dpkg --print-architecture 2>/dev/null)
cd "$(dirname "$0")/packages" && exec awk -v arch="$arch" '
	{ sub(/#.*/, "") }
	NF && ($2 !~ /^\[/ || $2 == "[" arch "]") { print $1 }' "${@:?}"
