#!/bin/bash
# releases.sh - built and run on other releases of Debian, each in a fresh root, by this machine's kernel
#
# The root is made once for each release, of Debian's archive as the machine's apt knows it. Each case begins
# with a copy of it, in which there is neither a compiler nor a library to build with.
#
# PROFIL_TEST_RELEASES are the releases; PROFIL_TEST_COMPILERS=0 leaves out their other compilers.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=tests/night/vm/fetch.sh
. tests/night/vm/fetch.sh

releases=${PROFIL_TEST_RELEASES:-bookworm trixie sid}
cache=$PWD/build/releases
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
archive=build/dist/profil-$version.tar.xz
binary=build/dist/profil-$version-linux-x86_64.tar.xz
root='' table=''
trap 'test -z "$daemon" || kill "$daemon"; rm -rf "$dir" ${root:+"$root"}' EXIT

# Makes the root of a release with what README's first command installs, and a user who may use sudo.
make_root() { # RELEASE
	mkdir -p "$cache/$1.debs/partial"
	test -e "$cache/$1.tar" || {
		# shellcheck disable=SC2016 # mmdebstrap's
		vm_root "$1" git,make,sudo,xz-utils "$cache/$1.new.tar" \
			--customize-hook='chroot "$1" useradd -m -s /bin/bash user' \
			--customize-hook='echo "user ALL=(ALL) NOPASSWD: ALL" >"$1/etc/sudoers.d/user"' \
			>"$cache/$1.log" 2>&1 || { tail -n 5 "$cache/$1.log"; return 1; }
		mv "$cache/$1.new.tar" "$cache/$1.tar"
	}
}

# Begins a case: a fresh root in $root, whose apt keeps what it fetches for the next case.
fresh() { # RELEASE
	release=$1
	test -z "$root" || rm -rf "$root"
	root=$(mktemp -d "$cache/root.XXXXXX")
	chmod 755 "$root"
	tar -C "$root" -xf "$cache/$1.tar"
	rm -f "$root"/etc/apt/apt.conf.d/docker-clean
}

# Runs a command in $root, in a mount namespace with a bpffs of its own.
inside() { # USER COMMAND...
	# shellcheck disable=SC2016 # another shell's
	timeout 3600 unshare --mount --propagation private sh -euc '
		root=$1 debs=$2 user=$3
		shift 3
		mount --bind "$root" "$root"
		mount -t proc proc "$root/proc"
		mount --rbind /sys "$root/sys"
		mount --rbind /dev "$root/dev"
		mount -t bpf none "$root/sys/fs/bpf"
		mount --bind "$debs" "$root/var/cache/apt/archives"
		cp -L /etc/resolv.conf /etc/hosts "$root/etc"
		home=/root
		test "$user" = root || home=/home/$user
		exec chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME="$home" \
			TERM=dumb setpriv --reuid="$user" --regid="$user" --init-groups "$@"
		' sh "$root" "$cache/$release.debs" "$@" </dev/null
}

# Gives "ok NAME" if the shell script succeeds as USER in $root; its output goes to $dir/out.
does() { # NAME USER SCRIPT
	if inside "$2" sh -euc "cd; $3" >"$dir/out" 2>&1; then
		ok "$release: $1"
	else
		fail "$release: $1" "$(tail -n 25 "$dir/out")"
		false
	fi
}

# The report of the demonstration: functions of perl with their shares, every sample accounted for.
shows_functions() {
	check "$release: the report of $1 has hot functions" grep -qE '^ *[0-9.]+ % .* (Perl_[a-z_]+|perl\+0x[0-9a-f]+) +perl$' "$dir/out"
	check "$release: the report of $1 accounts for its samples" grep -qE '^[1-9][0-9]* samples: [1-9][0-9]* binned, ' "$dir/out"
}

put() { # FILE USER
	local home=$root/root

	test "$2" = root || home=$root/home/$2
	cp "$1" "$home/${1##*/}"
}

# From a clone, and from the source archive, as root and as a user.
demo() { # USER clone|archive
	local sudo='' get="tar xf profil-$version.tar.xz && mv profil-$version profil"

	test "$1" = root || sudo=sudo
	if test "$2" = clone; then
		put "$dir/profil.bundle" "$1"
		get='git clone -q profil.bundle profil'
	else
		put "$archive" "$1"
	fi
	does "$1 runs make demo from $2" "$1" "$get && cd profil && $sudo make demo"
	shows_functions "make demo from $2 as $1"
	grep '^make deps: installs' "$dir/out" | sed 's/^/  /'
	does "all files of make demo from $2 belong to $1" "$1" "find profil ! -user $1 -printf '%u %p\n' | head; test -z \"\$(find profil ! -user $1)\""
}

# What the user of the demonstration does next.
user_builds() {
	does "the user builds the rest and the tests" user \
		'cd profil && sudo make deps DEPS="demo build quick" && make -j2 all tests 2>&1 | tee make.log && ! grep -B5 -A5 warning: make.log'
	does "make quick runs as the user" user 'cd profil && sudo make deps DEPS="test" && make quick'
	tail -n 1 "$dir/out" | sed 's/^/  /'
	# shellcheck disable=SC2016 # perl's
	does "root records with call graphs" user 'cd profil && sudo build/profilctl record -g -- perl -e "\$i += \$_ for 1 .. 5e6"'
}

# Each compiler that the release has as a package: gcc builds everything, clang the BPF programs, which load.
compilers() {
	local names

	# shellcheck disable=SC2016 # another shell's
	names=$(inside root sh -c 'apt-cache pkgnames | sed -nE "s/^(gcc-(1[2-9]|[2-9][0-9])|clang-(1[4-9]|[2-9][0-9]))$/\1/p"' | sort -V)
	for name in $names; do
		how='FAILS: see above'
		kept='' # what clang and gcc themselves need stays
		! inside root dpkg -s "$name" >"$dir/out" 2>&1 || kept=1
		does "$name is installed" root "apt-get install -q -y --no-install-recommends $name"
		case $name in
		gcc-*) does "$name builds everything without a warning" user \
			"cd profil && make -s -j2 B=build/$name CC=$name WERROR=1 all" && how='builds everything' ;;
		clang-*)
			does "$name compiles the BPF programs without a warning" user \
				"cd profil && make -s -j2 B=build/$name CLANG=$name WERROR=1 build/$name/profild build/$name/profilctl" &&
				check "$release: the BPF programs of $name need no more stack than Linux 6.1 allows" \
					python3 tests/gate/bpf_stack.py "$root/home/user/profil/build/$name/bpf/profil.bpf.o" &&
				does "the BPF programs of $name load and count" user \
					"cd profil && sudo build/$name/profilctl record -g -- perl -e '\$i += \$_ for 1 .. 5e6'" &&
				how='compiles the BPF programs, which load and count'
			;;
		esac
		table+=$(printf '  %-9s %-9s %s' "$release" "$name" "$how")$'\n'
		test "$kept" || does "$name is removed" root "apt-get purge -q -y --autoremove $name; rm -rf /home/user/profil/build/$name"
	done
}

# The archive of programs, in a root without any of the libraries to build with.
binaries() {
	local tree=profil-$version-linux-x86_64

	put "$binary" user
	does "the archive of programs is unpacked" user "tar xf $tree.tar.xz"
	does "its profilctl records" user "cd $tree && sudo ./profilctl record -g -o /tmp/profile -- perl -e '\$i += \$_ for 1 .. 2e7' && sudo ./profilctl report /tmp/profile"
	check "$release: its report has hot functions" grep -qE '^ *[0-9.]+ % .* perl$' "$dir/out"
	does "no library is missing" user "cd $tree && ! ldd profild profilctl profil-http | grep 'not found'"
	does "its profil-http starts" user "cd $tree && ./profil-http --version"
	does "it leaves no daemon, nor a pin" root '! pgrep -x profild 2>/dev/null && ! ls /sys/fs/bpf | grep profil'
	# By its path: sid's sudo leaves /usr/local out of PATH.
	does "install.sh installs" user "cd $tree && sudo find / -xdev ! -path '/tmp/*' ! -path '/run/*' | sort >/tmp/before; sudo ./install.sh && cd / && sudo /usr/local/bin/profilctl record -- perl -e '\$i += \$_ for 1 .. 2e7'"
	does "install.sh --uninstall removes all of it" user "cd $tree && sudo ./install.sh --uninstall && sudo find / -xdev ! -path '/tmp/*' ! -path '/run/*' | sort | diff /tmp/before -"
}

# The packages, built and installed there.
packages() {
	does "make deb builds the packages" user 'cd profil && sudo make deb && ls -l build/deb/*.deb'
	does "lintian finds neither errors nor warnings" user 'sudo apt-get install -q -y --no-install-recommends lintian >/dev/null && cd profil && lintian --fail-on error,warning build/deb/built/*.changes'
	fresh_debs=$dir/debs
	rm -rf "$fresh_debs"
	cp -r "$root/home/user/profil/build/deb" "$fresh_debs"
	fresh "$release"
	cp -r "$fresh_debs" "$root/root/deb"
	# shellcheck disable=SC2016 # another shell's
	does "the packages are installed in a fresh root" root \
		'apt-get update -q && cd deb && apt-get install -q -y --no-install-recommends ./*.deb'
	# shellcheck disable=SC2016 # perl's
	does "the installed profilctl records" root 'profilctl record -- perl -e "\$i += \$_ for 1 .. 2e7"'
	does "the packages are purged" root "apt-get purge -q -y profild profilctl profil-http libprofil1 libprofil-dev; ! find / -xdev -name '*profil*' ! -path '/root/*' ! -path '/proc/*' ! -path '/var/cache/*' | grep -v 'gprof\|/share/doc\|/python\|profile\|profiling'"
}

needs mmdebstrap "profil builds on other releases"
mkdir -p "$cache"
check "make dist leaves the archives" env -u MAKEFLAGS -u MAKELEVEL make -s dist
git bundle create -q "$dir/profil.bundle" HEAD
for r in $releases; do
	if ! made=$(make_root "$r"); then
		fail "$r: a root is made" "$made"
		continue
	fi
	fresh "$r"
	demo root clone
	fresh "$r"
	demo root archive
	fresh "$r"
	demo user archive
	fresh "$r"
	demo user clone
	user_builds
	test "${PROFIL_TEST_COMPILERS:-1}" = 0 || compilers
	packages
	fresh "$r"
	binaries
done
test -z "$table" || printf 'compilers, without a warning:\n%s' "$table"
finish
