#!/bin/bash
# fetch.sh - Debian's kernels and virtme-ng into a cache outside the tree, through the machine's apt
#
# To be sourced. What is fetched once is not looked for again: remove the cache to get newer ones.
# PROFIL_VM_CACHE says where it is; debootstrap and apt make it grow to about a gigabyte.

vm_cache=${PROFIL_VM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/profil-vm}
vm_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

vm_die() { # WORDS...
	echo "tests/vm: $*" >&2
	exit 1
}

# Debian's release names for "sid" and so on: the machine's own sources with the suite replaced, in
# a directory of their own; nothing of the machine's apt is touched.
vm_apt() { # SUITE COMMAND ARGS...
	local suite=$1 apt=$vm_cache/apt/$1 command=$2

	shift 2
	"$command" -q -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=- \
		-o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt" \
		-o APT::Sandbox::User=root "$@" || vm_die "$command $* failed for $suite"
}

# The machine's own archive, as one line for @SUITE.
vm_source() { # SUITE
	local own

	# shellcheck source=/dev/null
	own=$(. /etc/os-release && echo "$VERSION_CODENAME")
	# shellcheck disable=SC2016 # apt's variables, not the shell's
	apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
		sed -n "s|^$own main \(.*\)|deb [signed-by=$vm_keyring] \1 $1 main|p" | sort -u
}

# The address of that archive.
vm_archive() { # SUITE
	local archive

	archive=$(vm_source "$1" | sed -n '1s/.*\] \([^ ]*\) .*/\1/p')
	test "$archive" || vm_die "apt knows no Debian archive to take $1 from: see apt-get indextargets"
	echo "$archive"
}

vm_lists() { # SUITE
	local apt=$vm_cache/apt/$1

	test ! -e "$apt/updated" || return 0
	mkdir -p "$apt/lists/partial" "$apt/archives/partial"
	vm_source "$1" >"$apt/sources.list"
	test -s "$apt/sources.list" || vm_die "apt knows no Debian archive to take $1 from: see apt-get indextargets"
	vm_apt "$1" apt-get update --error-on=any >&2
	touch "$apt/updated"
}

# Prints what @PACKAGE depends on, by name.
vm_depends() { # SUITE PACKAGE
	vm_apt "$1" apt-cache show --no-all-versions "$2" |
		sed -n 's/^Depends: //p' | tr ',' '\n' | sed 's/^ *//; s/[ (|].*//'
}

# Unpacks @PACKAGE into @DIR. It is not installed.
vm_unpack() { # SUITE PACKAGE DIR
	local debs status

	debs=$(mktemp -d "$vm_cache/debs.XXXXXX") || exit 1
	(cd "$debs" && vm_apt "$1" apt-get download "$2") >&2 && dpkg -x "$debs"/*.deb "$3"
	status=$?
	rm -rf "$debs"
	test "$status" -eq 0 || vm_die "$2 of $1 cannot be had or unpacked: see above"
}

# The packages that the kernel of @PACKAGE consists of: one, or an image and its modules.
vm_kernel_packages() { # SUITE PACKAGE
	local p

	echo "$2"
	for p in $(vm_depends "$1" "$2" | grep -E '^linux-(image|base|binary|modules)-[0-9]'); do
		vm_kernel_packages "$1" "$p"
	done
}

# Where the modules are, whether or not /lib has been merged into /usr in this package.
vm_kernel_modules() { # DIR
	local modules

	for modules in "$1"/lib/modules/* "$1"/usr/lib/modules/*; do
		if test -d "$modules"; then
			echo "$modules"
			return
		fi
	done
}

# Puts an unpacked kernel's parts where they are looked for: boot/vmlinuz-V and lib/modules/V.
vm_kernel_arrange() { # DIR
	local modules version

	modules=$(vm_kernel_modules "$1")
	version=${modules##*/}
	mkdir -p "$1/boot" "$1/lib"
	test -d "$1/lib/modules" || ln -s ../usr/lib/modules "$1/lib/modules"
	test -e "$1/boot/vmlinuz-$version" || cp "$modules/vmlinuz" "$1/boot/vmlinuz-$version" ||
		vm_die "there is no vmlinuz in $1"
	depmod -b "$1" "$version" || vm_die "depmod failed for $version"
	echo "$version" >"$1/version"
}

# Prints the directory of the kernel that linux-image-ARCH of @SUITE stands for, fetched if it is
# not there; its version is in the file "version".
vm_kernel() { # SUITE
	local dir=$vm_cache/kernel/$1 p

	if ! test -d "$dir"; then
		vm_lists "$1"
		rm -rf "$dir.new"
		mkdir -p "$dir.new"
		for p in $(vm_kernel_packages "$1" "linux-image-$(dpkg --print-architecture)" | sort -u); do
			vm_unpack "$1" "$p" "$dir.new"
		done
		vm_kernel_arrange "$dir.new"
		mv "$dir.new" "$dir"
	fi
	echo "$dir"
}

# Prints the directory of virtme-ng, fetched if it is not there. Debian 12 has none of its own.
vm_virtme() {
	local dir=$vm_cache/virtme-ng

	if ! test -d "$dir"; then
		vm_lists trixie
		rm -rf "$dir.new"
		vm_unpack trixie virtme-ng "$dir.new"
		mv "$dir.new" "$dir"
	fi
	echo "$dir"
}
