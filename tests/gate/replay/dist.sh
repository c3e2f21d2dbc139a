#!/bin/bash
# dist.sh - the archive of the sources: the same bytes wherever, whenever and from whatever it is made
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

version=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
name=profil-$version

packed() { # TREE
	env -u MAKEFLAGS -u MAKELEVEL TZ=Pacific/Kiritimati make -s -C "$1" dist-source
}

check "make dist-source packs the sources" packed .
check "the archive is unpacked" tar -C "$dir" -xf "build/dist/$name.tar.xz"
check "all of its files are below one directory" test -z "$(tar -tf "build/dist/$name.tar.xz" | grep -v "^$name/")"
check "its files have neither the user's name nor his time" \
	test "$(tar --full-time -tvf "build/dist/$name.tar.xz" | awk '{ print $2, $4 }' | sort -u | wc -l)" -eq 1
chmod -R go-rwx "$dir/$name"
check "make dist-source packs what was unpacked, without .git" packed "$dir/$name"
check "both archives have the same bytes" cmp "build/dist/$name.tar.xz" "$dir/$name/build/dist/$name.tar.xz"
finish
