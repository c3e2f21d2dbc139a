#!/bin/bash
# dist.sh - leaves an archive of the sources, or of the built programs, in build/dist/
#
# usage: VERSION=V mk/dist.sh source|programs
#
# source: what git tracks or, without .git, everything but build/. Neither the time, the user nor the
# place is in the archive, so the archive that is made from an unpacked one has the same bytes.
#
# programs: profild, profilctl, profil-http and libprofil, with what installs them. They run on this
# distribution's release and on later ones, wherever they are unpacked: libraries are linked statically
# where Debian has an archive of them, the others are in lib/, which the programs find from where they are
# themselves. glibc is the system's.
set -eu -o pipefail
export LC_ALL=C TZ=UTC0
cd "$(dirname "$0")/.."
out=build/dist
name=profil-${VERSION:?}
mkdir -p "$out"

# That of the last entry of the changelog.
epoch=$(date -d "$(sed -n 's/^ -- .*>  //p;T;q' debian/changelog)" +%s)

# Packs the files that are named on standard input, in this directory, as PREFIX/...
pack() { # PREFIX ARCHIVE
	tar --create --no-recursion --format=gnu --owner=0 --group=0 --numeric-owner --mtime="@$epoch" \
		--mode=u=rwX,go=rX --transform="s,^\./,,S" --transform="s,^,$1/,S" --null --files-from=- |
		xz -9 -T1 >"$2.new"
	mv "$2.new" "$2"
	echo "make dist: $2: $(stat -c %s "$2") bytes"
}

sources() {
	if test -e .git; then
		git -c safe.directory='*' ls-files -z
	else
		find . -path ./build -prune -o \( -type f -o -type l \) -printf '%P\0'
	fi | sort -z
}

# A library's archive where Debian has one, or nothing.
archive_of() { # LIBRARY
	local file

	file=$(gcc -print-file-name="$1.a")
	test "$file" = "$1.a" || realpath "$file"
}

link_statically() {
	local library file more='-lelf -lz'

	rm -rf "$out/static"
	mkdir -p "$out/static"
	for library in libbpf libbz2 libdw libelf libjansson liblzma libmicrohttpd libncursesw libtinfo libz libzstd; do
		file=$(archive_of "$library")
		test "$file" || continue
		ln -s "$file" "$out/static/$library.a"
		# What the archives need beside each other.
		case $library in
		libbz2 | liblzma | libzstd) more+=" -l${library#lib}" ;;
		libmicrohttpd) more+=' -lgnutls' ;;
		esac
	done
	# -L of the archives alone comes first, so -lX finds no shared library there.
	# shellcheck disable=SC2016 # make's and the loader's
	$MAKE B="$out/objects" MORE_LIBS="$more" \
		CFLAGS="-O2 -fstack-protector-strong -D_FORTIFY_SOURCE=2 -ffile-prefix-map=$PWD=." \
		LDFLAGS="-L$PWD/$out/static -Wl,-z,relro,-z,now" \
		RPATH='-Wl,--disable-new-dtags,-rpath,'\''$$ORIGIN/lib:$$ORIGIN/../lib/profil'\' all
}

# Prints SONAME and file of each shared library but glibc's that the programs need.
shared_libraries() {
	local own

	own=$(dpkg -L libc6 | xargs -r realpath -q)
	ldd "$out"/objects/{profild,profilctl,profil-http} | awk '$2 == "=>" { print $1, $3 }' | sort -u |
		while read -r soname file; do
			grep -qxF "$(realpath "$file")" <<<"$own" || echo "$soname $(realpath "$file")"
		done
}

# The copyright file of the package that has FILE, and a line for the notice.
license() { # DIR FILE HOW
	local package

	package=$(dpkg -S "$2" 2>/dev/null || dpkg -S "${2#/usr}")
	package=${package%%: *}
	package=${package%%,*}
	cp "/usr/share/doc/${package%:*}/copyright" "$1/${package%:*}.copyright"
	# shellcheck disable=SC2016 # dpkg-query's
	dpkg-query -W -f "$(basename "$2"), $3: Debian "'${source:Package} ${source:Version}, ${Package}.copyright\n' "$package"
}

licenses() { # DIR
	local dir=$1/licenses text

	mkdir -p "$dir"
	{
		cat <<-NOTICE
			These libraries are part of the programs, or beside them in lib/. Their sources are the Debian source
			packages that are named here; with them and profil's own, which make dist packs, the programs can be
			linked again with other versions of them. Each license is in the file that is named last, and the
			texts to which these files refer are here as well.

		NOTICE
		for library in "$out"/static/*.a "$(archive_of libiberty)"; do
			license "$dir" "$(realpath "$library")" "linked statically"
		done
		while read -r _ file; do license "$dir" "$file" "in lib/"; done < <(shared_libraries)
	} >"$dir/NOTICE"
	for text in GPL-2 GPL-3 LGPL-2 LGPL-2.1 LGPL-3; do
		! grep -q "common-licenses/$text\b" "$dir"/*.copyright || cp "/usr/share/common-licenses/$text" "$dir"
	done
}

programs() {
	local tree page

	if ! command -v dpkg-query >/dev/null; then
		echo "make dist: the archive of programs is made on Debian only: the licenses of the libraries come from its packages" >&2
		exit 1
	fi
	link_statically
	name=$name-linux-$(uname -m) tree=$out/$name
	rm -rf "$tree"
	mkdir -p "$tree"/{lib,man,completion,pkgconfig,systemd}
	install -m 755 -s "$out"/objects/{profild,profilctl,profil-http} "$tree"
	install -m 644 "$out"/objects/libprofil.{so.1,a} "$tree"
	strip --strip-unneeded "$tree/libprofil.so.1"
	strip --strip-debug --enable-deterministic-archives "$tree/libprofil.a"
	ln -s libprofil.so.1 "$tree/libprofil.so"
	shared_libraries | while read -r soname file; do install -m 644 "$file" "$tree/lib/$soname"; done
	cp -r include LICENSE README.md mk/install.sh "$tree"
	for page in src/*/*.[1-8]; do cp "$page" "$tree/man"; done
	cp src/profilctl/completion/* "$tree/completion"
	cp -r deploy "$tree"
	cp src/libprofil/*.pc.in "$tree/pkgconfig"
	cp systemd/* "$tree/systemd"
	echo "$VERSION" >"$tree/VERSION"
	licenses "$tree"
	echo "make dist: the programs need $(objdump -T "$tree"/{profild,profilctl,profil-http,lib/*,libprofil.so.1} |
		grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1) or newer"
	(cd "$tree" && find . \( -type f -o -type l \) -print0 | sort -z) | (cd "$tree" && pack "$name" "$OLDPWD/$out/$name.tar.xz")
}

case ${1:-} in
source) sources | pack "$name" "$out/$name.tar.xz" ;;
programs) programs ;;
*) sed -n '/^# usage: /s/^# //p' mk/dist.sh >&2 && exit 2 ;;
esac
