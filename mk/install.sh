#!/bin/sh
# install.sh - installs profil, or removes what it installed
#
# usage: ./install.sh [--prefix DIR] [--destdir DIR] [--uninstall]
#
# "make install" and "make uninstall" call it with their variables in the environment, as does the
# archive of built programs, in which it stands beside them. What it installs, and each directory that it
# had to make, is a line of PREFIX/lib/profil/installed: exactly that is removed.
set -eu
umask 022
export LC_ALL=C
cd "$(dirname "$0")"

usage() {
	sed -n '/^# usage: /s/^# //p' install.sh
	exit "$1"
}

uninstall=
while test $# -gt 0; do
	case $1 in
	--prefix) PREFIX=${2:?a directory} && shift ;;
	--prefix=*) PREFIX=${1#*=} ;;
	--destdir) DESTDIR=${2:?a directory} && shift ;;
	--destdir=*) DESTDIR=${1#*=} ;;
	--uninstall) uninstall=1 ;;
	-h | --help) usage 0 ;;
	*) usage 2 >&2 ;;
	esac
	shift
done

PREFIX=${PREFIX:-/usr/local} D=${DESTDIR:-}
case $PREFIX in /*) ;; *) echo "install.sh: the prefix must be an absolute path: $PREFIX" >&2 && exit 2 ;; esac
: "${BINDIR:=$PREFIX/bin}" "${SBINDIR:=$PREFIX/sbin}" "${LIBDIR:=$PREFIX/lib}" "${INCLUDEDIR:=$PREFIX/include}"
: "${DATADIR:=$PREFIX/share}" "${UNITDIR:=$PREFIX/lib/systemd/system}" "${SYSUSERSDIR:=$PREFIX/lib/sysusers.d}"
: "${MANDIR:=$DATADIR/man}" "${SYSCONFDIR:=/etc}"
manifest=${MANIFEST-$PREFIX/lib/profil/installed} # empty: none, for packages

# In the source tree, or in the archive of built programs.
if test -e ../Makefile; then
	cd ..
	programs=${B:-build} pages='src/*/*.[1-8]' completion=src/profilctl/completion pc=src/libprofil
else
	programs=. pages='man/*.[1-8]' completion=completion pc=pkgconfig VERSION=$(cat VERSION)
fi
list=$(mktemp)
trap 'rm -f "$list"' EXIT

# Whether what is installed or removed is this running system's, with its service manager.
live() {
	test -z "$D" && test "$(id -u)" -eq 0 && test -d /run/systemd/system
}

directory() { # PATH
	test ! -d "$D$1" || return 0
	directory "$(dirname "$1")"
	mkdir "$D$1"
	echo "d $1" >>"$list"
}

put() { # MODE SOURCE PATH
	directory "$(dirname "$3")"
	install -m "$1" "$2" "$D$3"
	echo "f $3" >>"$list"
}

put_filled() { # SOURCE PATH [DIALECT]
	directory "$(dirname "$2")"
	sed -e "s|@PREFIX@|$PREFIX|g" -e "s|@BINDIR@|$BINDIR|g" -e "s|@SBINDIR@|$SBINDIR|g" \
		-e "s|@LIBDIR@|$LIBDIR|g" -e "s|@INCLUDEDIR@|$INCLUDEDIR|g" -e "s|@SYSCONFDIR@|$SYSCONFDIR|g" \
		-e "s|@VERSION@|$VERSION|g" -e "s|@DIALECT@|${3:-}|g" "$1" >"$D$2"
	chmod 644 "$D$2"
	echo "f $2" >>"$list"
}

install_files() {
	put 755 "$programs/profilctl" "$BINDIR/profilctl"
	for f in profild profil-http; do put 755 "$programs/$f" "$SBINDIR/$f"; done
	for f in libprofil.so.1 libprofil.a; do put 644 "$programs/$f" "$LIBDIR/$f"; done
	ln -sf libprofil.so.1 "$D$LIBDIR/libprofil.so"
	echo "f $LIBDIR/libprofil.so" >>"$list"
	# The shared libraries of the archive: where its programs look for them.
	for f in lib/*.so.*; do test ! -e "$f" || put 644 "$f" "$PREFIX/lib/profil/${f##*/}"; done
	for f in $(cd include && find . -name '*.h'); do put 644 "include/$f" "$INCLUDEDIR/${f#./}"; done
	put_filled "$pc/libprofil.pc.in" "$LIBDIR/pkgconfig/libprofil.pc"
	for f in include/profil/*/; do
		f=$(basename "$f")
		put_filled "$pc/dialect.pc.in" "$LIBDIR/pkgconfig/libprofil-$f.pc" "$f"
	done
	for f in $pages; do put 644 "$f" "$MANDIR/man${f##*.}/${f##*/}"; done
	put 644 "$completion/profilctl.bash" "$DATADIR/bash-completion/completions/profilctl"
	put 644 "$completion/_profilctl" "$DATADIR/zsh/site-functions/_profilctl"
	put 644 "$completion/profilctl.fish" "$DATADIR/fish/vendor_completions.d/profilctl.fish"
	for f in deploy/clickhouse/*.sql; do put 644 "$f" "$DATADIR/doc/profil/clickhouse/${f##*/}"; done
	for f in systemd/*.service; do put_filled "$f" "$UNITDIR/${f##*/}"; done
	for f in systemd/*.socket systemd/*.path; do put 644 "$f" "$UNITDIR/${f##*/}"; done
	put 644 systemd/perf-events.conf "$DATADIR/profil/perf-events.conf"
	for f in profil profil-spool profil-push; do put 644 "systemd/$f.sysusers" "$SYSUSERSDIR/$f.conf"; done
}

# The administrator's: one that is there stays, and one that was changed since is not removed.
install_config() { # SOURCE PATH
	test ! -e "$D$2" || return 0
	put 644 "$1" "$2"
	sed -i "\$s|.*|c $(cksum <"$D$2" | tr ' ' -) $2|" "$list"
}

write_manifest() {
	test "$manifest" || return 0
	directory "$(dirname "$manifest")"
	echo "f $manifest" >>"$list"
	test ! -e "$D$manifest" || cat "$D$manifest" >>"$list"
	sort -u "$list" >"$D$manifest"
}

remove_config() { # SUM PATH
	if test ! -e "$D$2"; then
		return
	elif test "$(cksum <"$D$2" | tr ' ' -)" = "$1"; then
		rm "$D$2"
	else
		echo "install.sh: $D$2 was changed and stays"
	fi
}

units='profild.socket profild.service profil-http.socket profil-http.service profil-spool.service
profil-push.service profil-feed.service profil-interpreters.path'

if test -z "$uninstall"; then
	mkdir -p "$D/"
	install_files
	for f in systemd/*.conf; do
		test "$f" = systemd/perf-events.conf || install_config "$f" "$SYSCONFDIR/profil/${f##*/}"
	done
	write_manifest
	live || exit 0
	systemd-sysusers "$SYSUSERSDIR/profil.conf" "$SYSUSERSDIR/profil-spool.conf" "$SYSUSERSDIR/profil-push.conf"
	systemctl daemon-reload
	echo "To start the daemon at the first connection: systemctl enable --now profild.socket profil-http.socket"
	echo "To have interpreted functions in the machine's profile: systemctl enable --now profil-interpreters.path && systemctl start profil-interpreters"
	exit 0
fi

if ! test -e "$D$manifest"; then
	echo "install.sh: nothing was installed with this prefix: $D$manifest does not exist" >&2
	exit 1
fi
# shellcheck disable=SC2086 # names of units
! live || systemctl disable -q --now $units 2>/dev/null || :
cp "$D$manifest" "$list"
while read -r kind path; do
	case $kind in
	f) rm -f "$D$path" ;;
	c) remove_config "${path%% *}" "${path#* }" ;;
	esac
done <"$list"
grep '^d ' "$list" | sort -r | while read -r kind path; do
	rmdir "$D$path" 2>/dev/null || :
done
live || exit 0
systemctl daemon-reload
echo "The users profil, profil-spool and profil-push, and /var/lib/profil-spool and -push, stay: userdel and rm remove them"
