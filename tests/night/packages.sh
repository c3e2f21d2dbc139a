#!/bin/bash
# packages.sh - the Debian packages are complete, clean, small and reproducible
#
# "make deb-run" builds them; "make tests" does not.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=tests/night/vm/exposure.sh
. tests/night/vm/exposure.sh

LIBRARY_BYTES_MAX=100000
debs=$BUILD/deb

# Builds the packages again in another directory, time zone and language.
build_again() {
	env -u MAKEFLAGS -u BUILD TZ=Pacific/Kiritimati LC_ALL=C.UTF-8 LANGUAGE=fr HOME=/nonexistent \
		make -s deb-run DEB="$dir/elsewhere/packages" >"$dir/words" 2>&1 || { cat "$dir/words"; return 1; }
}

same_bytes() {
	local deb

	for deb in "$debs"/*.deb; do
		cmp "$deb" "$dir/elsewhere/packages/${deb##*/}" || return 1
	done
}

only_needs() { # FILE LIBRARY
	local needed

	needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
	echo "it needs: $needed"
	test "$needed" = "$2"
}

if ! test -e "$debs/.built"; then
	fail "$debs" "there are no packages: 'make deb' builds them"
	finish
fi
for name in profild profilctl profil-http libprofil1 libprofil-dev; do
	check "$name was built" dpkg-deb -x "$debs/${name}"_[0-9]*.deb "$dir/$name"
done

library=$(echo "$dir"/libprofil1/usr/lib/*/libprofil.so.1)
check "libprofil.so.1 is stripped" test -z "$(nm "$library" 2>/dev/null)"
check "libprofil.so.1 has $(stat -c %s "$library") bytes, at most $LIBRARY_BYTES_MAX" \
	test "$(stat -c %s "$library")" -le "$LIBRARY_BYTES_MAX"
check "libprofil.so.1 needs libc alone" only_needs "$library" libc.so.6

if command -v systemd-analyze >/dev/null; then
	for unit in profild/profild profil-http/profil-http profilctl/profil-spool profilctl/profil-interpreters; do
		check_exposure --offline=yes "$(find "$dir/${unit%/*}" -name "${unit#*/}.service")"
	done
else
	lacks "systemd-analyze security" "systemd-analyze"
fi
if command -v lintian >/dev/null; then
	check "lintian finds neither errors nor warnings" \
		lintian --allow-root --fail-on error,warning "$debs"/built/*.changes
else
	lacks "lintian finds neither errors nor warnings" "lintian"
fi
check "the packages build again in another directory" build_again
check "two builds of the packages have the same bytes" same_bytes
finish
