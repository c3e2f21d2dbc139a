#!/bin/bash
# install.sh - make install: every file and link, and programs built with what it installs
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

root=$dir/root
if ! said=$(env -u MAKEFLAGS flock "$BUILD" make -s install B="$BUILD" SAN="${SAN:-}" DESTDIR="$root" PREFIX=/opt/profil 2>&1); then
	fail "make install" "$said"
	finish
fi

for f in sbin/profild bin/profilctl; do
	check "make install installs the program $f" test -x "$root/opt/profil/$f"
done
for f in lib/libprofil.so.1 lib/libprofil.a include/profil.h lib/pkgconfig/libprofil.pc \
	lib/systemd/system/profild.service lib/systemd/system/profild.socket lib/sysusers.d/profil.conf; do
	check "make install installs $f" test -f "$root/opt/profil/$f"
done
check "libprofil.so links to libprofil.so.1" test "$(readlink "$root/opt/profil/lib/libprofil.so")" = libprofil.so.1
check "the soname is libprofil.so.1" grep -q 'SONAME.*\[libprofil\.so\.1\]' \
	<(readelf -d "$root/opt/profil/lib/libprofil.so.1")
check "the unit runs the installed daemon" grep -q '^ExecStart=/opt/profil/sbin/profild' \
	"$root/opt/profil/lib/systemd/system/profild.service"
check "the unit reads the installed profild.conf" grep -q ' --config /etc/profil/profild.conf$' \
	"$root/opt/profil/lib/systemd/system/profild.service"
units=$root/opt/profil/lib/systemd/system
check "the unit that describes interpreters runs the installed profilctl" \
	grep -qx 'ExecStart=/opt/profil/bin/profilctl interpreters' "$units/profil-interpreters.service"
check "it may write where the daemon reads" grep -qx "StateDirectory=$(
	sed -n 's,.*PROFIL_INTERPRETERS_FILE "/var/lib/\(.*\)/.*,\1,p' src/core/interpreters_file.h)" \
	"$units/profil-interpreters.service"
check "it is run when packages change" grep -qx 'PathChanged=/var/lib/dpkg/status' "$units/profil-interpreters.path"
for f in profild profil-http spool push; do
	check "make install installs $f.conf" cmp "systemd/$f.conf" "$root/etc/profil/$f.conf"
done
check "no installed file has a placeholder" test -z "$(grep -rlI '@[A-Z]*@' "$root")"
for page in src/*/*.[1-8]; do
	test -e "$page" || continue
	check "make install installs ${page##*/}" test -f "$root/opt/profil/share/man/man${page##*.}/${page##*/}"
done
while read -r header; do
	check "make install installs ${header#include/}" cmp "$header" "$root/opt/profil/$header"
done < <(find include -name '*.h' | sort)

export PKG_CONFIG_PATH=$root/opt/profil/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
export LD_LIBRARY_PATH=$root/opt/profil/lib

# Builds the program on stdin with pkg-config's flags alone and runs it; it must return 0.
builds_and_runs() { # PACKAGE
	# shellcheck disable=SC2046 # flags, to be split
	cc ${SAN:+-fsanitize="$SAN"} -x c -o "$dir/user" - $(pkg-config --cflags --libs "$1") &&
		"$dir/user"
}

daemon_start
check "pkg-config builds a program that runs" builds_and_runs libprofil <<'C'
#include <profil.h>
int main(void)
{
	return profil_sync();
}
C
if test "${SAN:-}"; then
	skip "the installed profilctl run preloads the installed library" "a shell that is not sanitized cannot load it"
else
	# shellcheck disable=SC2016 # another shell's
	check "the installed profilctl run preloads the installed library" test "$("$root/opt/profil/bin/profilctl" run -- \
		sh -c 'echo "$LD_PRELOAD"')" = "/\$LIB/../../../../../../../..$(realpath "$root")/opt/profil/lib/libprofil.so.1"
fi
check "pkg-config builds an AIX program that runs" builds_and_runs libprofil-aix <<'C'
#include <mon.h>
int main(void)
{
	static short buf[8];
	return profil(buf, sizeof(buf), 0, 0);
}
C
check "pkg-config builds an IRIX program that runs" builds_and_runs libprofil-irix <<'C'
#include <sys/time.h>
#include <sys/profil.h>
int main(void)
{
	static unsigned short buf[8];
	struct prof p = { buf, sizeof(buf), 0, 0x10000 };
	struct timeval tv;
	return sprofil(&p, 1, &tv, PROF_USHORT);
}
C
for system in darwin solaris v7; do
	check "pkg-config builds a program for $system that runs" builds_and_runs libprofil-$system <<'C'
#include <unistd.h>
int main(void)
{
	static char buf[16];
	profil((void *)buf, sizeof(buf), 0, 0);
	return 0;
}
C
done
daemon_stop

# Removes what was installed, and no directory that was there.
uninstall() { # ARGS...
	env -u MAKEFLAGS make -s uninstall B="$BUILD" "$@"
}
check "make uninstall succeeds" uninstall DESTDIR="$root" PREFIX=/opt/profil
check "make uninstall leaves nothing" test -z "$(find "$root" -mindepth 1)"
mkdir -p "$root/usr/local/bin" "$root/usr/local/share/man" "$root/etc"
find "$root" | sort >"$dir/before"
check "make install installs below another prefix" env -u MAKEFLAGS flock "$BUILD" make -s install B="$BUILD" SAN="${SAN:-}" DESTDIR="$root"
check "make install installs over itself" env -u MAKEFLAGS flock "$BUILD" make -s install B="$BUILD" SAN="${SAN:-}" DESTDIR="$root"
echo 'rate 50' >>"$root/etc/profil/profild.conf"
touch "$root/usr/local/lib/other"
uninstall DESTDIR="$root" >"$dir/words"
check "make uninstall says that a changed configuration stays" grep -q 'profild.conf was changed and stays$' "$dir/words"
check "make uninstall leaves the directories that were there and the files of others" test "$(cat "$dir/before" - <<-END | sort
	$root/etc/profil
	$root/etc/profil/profild.conf
	$root/usr/local/lib
	$root/usr/local/lib/other
END
)" = "$(find "$root" | sort)"

# The folders that units have systemd make, and no package contains.
of_units() {
	sed -n 's|^StateDirectory=|/var/lib/|p; s|^CacheDirectory=|/var/cache/|p' systemd/*.service
}
for folder in $(of_units); do
	check "a purge removes $folder" grep -qE "rm -rf( /[^ ]+)* $folder( |\$)" debian/profilctl.postrm
done
check "make uninstall fails where nothing was installed" test "$(uninstall DESTDIR="$dir/none" >"$dir/words" 2>&1; echo $?)" -ne 0
finish
