#!/bin/bash
# replay-install.sh - what "make install" leaves is whole: paths, links, and a program built on it
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

root=$dir/root
if ! said=$(env -u MAKEFLAGS make -s install B="$BUILD" SAN="${SAN:-}" DESTDIR="$root" PREFIX=/opt/profil 2>&1); then
	fail "make install" "$said"
	finish
fi

for f in sbin/profild bin/profilctl; do
	check "$f is a program" test -x "$root/opt/profil/$f"
done
for f in lib/libprofil.so.1 lib/libprofil.a include/profil.h lib/pkgconfig/libprofil.pc \
	lib/systemd/system/profild.service lib/systemd/system/profild.socket lib/sysusers.d/profil.conf; do
	check "$f is there" test -f "$root/opt/profil/$f"
done
check "libprofil.so leads to libprofil.so.1" test "$(readlink "$root/opt/profil/lib/libprofil.so")" = libprofil.so.1
check "its soname is libprofil.so.1" grep -q 'SONAME.*\[libprofil\.so\.1\]' \
	<(readelf -d "$root/opt/profil/lib/libprofil.so.1")
check "the unit runs the installed daemon" grep -q '^ExecStart=/opt/profil/sbin/profild' \
	"$root/opt/profil/lib/systemd/system/profild.service"
check "it reads the installed file of options" grep -q ' --config /etc/profil/profild.conf$' \
	"$root/opt/profil/lib/systemd/system/profild.service"
check "which is there" cmp systemd/profild.conf "$root/etc/profil/profild.conf"
check "no placeholder is left" test -z "$(grep -rlI '@[A-Z]*@' "$root")"
for page in src/*/*.[1-8]; do
	test -e "$page" || continue
	check "${page##*/} is installed" test -f "$root/opt/profil/share/man/man${page##*.}/${page##*/}"
done
while read -r header; do
	check "${header#include/} is installed" cmp "$header" "$root/opt/profil/$header"
done < <(find include -name '*.h' | sort)

export PKG_CONFIG_PATH=$root/opt/profil/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
export LD_LIBRARY_PATH=$root/opt/profil/lib

# Builds the program on stdin by pkg-config and nothing else; it must end with status 0.
builds_and_runs() { # PACKAGE
	# shellcheck disable=SC2046 # flags, to be split
	cc ${SAN:+-fsanitize="$SAN"} -x c -o "$dir/user" - $(pkg-config --cflags --libs "$1") &&
		"$dir/user"
}

daemon_start
check "a program is built by pkg-config, and runs" builds_and_runs libprofil <<'C'
#include <profil.h>
int main(void)
{
	return profil_sync();
}
C
if test "${SAN:-}"; then
	skip "profilctl run preloads what is installed with it" "a shell that is not sanitized cannot load it"
else
	# shellcheck disable=SC2016 # another shell's
	check "profilctl run preloads what is installed with it" test "$("$root/opt/profil/bin/profilctl" run -- \
		sh -c 'echo "$LD_PRELOAD"')" = "$(realpath "$root")/opt/profil/lib/libprofil.so.1"
fi
check "one for AIX" builds_and_runs libprofil-aix <<'C'
#include <mon.h>
int main(void)
{
	static short buf[8];
	return profil(buf, sizeof(buf), 0, 0);
}
C
check "one for IRIX" builds_and_runs libprofil-irix <<'C'
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
	check "one for $system" builds_and_runs libprofil-$system <<'C'
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
finish
