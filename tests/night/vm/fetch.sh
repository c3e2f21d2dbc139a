#!/bin/bash
# fetch.sh - Debian's kernels and virtme-ng into a cache outside the tree, through the machine's apt
#
# To be sourced. vendor/guests pins versions and checksums; a version that the archive no longer has is
# replaced by the newest, with a warning. What is in the cache is not fetched again. PROFIL_VM_CACHE says
# where it is; debootstrap and apt make it grow to about a gigabyte.

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

# Makes a root of that archive in TARGET, for scripts that have tests/lib/lib.sh. An archive that is a snapshot has
# old dates.
vm_root() { # SUITE PACKAGES TARGET ARG...
	local options

	mapfile -t options < <(apt-config dump |
		sed -nE 's/^(Acquire::(Check-Valid-Until|Check-Date|https?::Proxy[^ ]*) .*);$/--aptopt=\1/p')
	vm_source "$1" | online mmdebstrap --variant=minbase "${options[@]}" --include="$2" "${@:4}" "$1" "$3" -
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

# Prints "PACKAGE VERSION SHA256" of what vendor/guests pins of @SUITE for this architecture.
vm_pins() { # SUITE REGEX
	awk -v suite="$1" -v name="^($2)" -v arch="$(dpkg --print-architecture)" \
		'$1 == suite && $2 ~ name && ($4 == arch || $4 == "all") { print $2, $3, $5 }' vendor/guests
}

# Whether the archive has all that is pinned.
vm_has_pins() { # SUITE REGEX
	local package version sum none=1

	while read -r package version sum; do
		none=0
		(vm_apt "$1" apt-cache show "$package=$version") 2>/dev/null | grep -q '^Package:' && continue
		echo "tests/vm: warning: the archive no longer has $package $version of $1, which vendor/guests pins" >&2
		return 1
	done < <(vm_pins "$1" "$2")
	test "$none" = 0 || echo "tests/vm: warning: vendor/guests pins no $2 of $1 for this architecture" >&2
	return "$none"
}

# Unpacks @PACKAGE into @DIR. It is not installed. @VERSION and @SUM are the pinned ones, if any.
vm_unpack() { # SUITE DIR PACKAGE [VERSION SUM]
	local debs status

	debs=$(mktemp -d "$vm_cache/debs.XXXXXX") || exit 1
	(cd "$debs" && vm_apt "$1" apt-get download "$3${4:+=$4}") >&2 &&
		{ test -z "${5:-}" || echo "$5 $(echo "$debs"/*.deb)" | sha256sum -c --status; } &&
		dpkg -x "$debs"/*.deb "$2"
	status=$?
	rm -rf "$debs"
	test "$status" -eq 0 || vm_die "$3${4:+ $4} of $1: cannot fetch, verify or unpack it: see above"
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

# Unpacks what is pinned of @SUITE by the name @REGEX, or the newest of @PACKAGES.
vm_unpack_pinned() { # SUITE DIR REGEX PACKAGES...
	local package version sum p

	rm -rf "$2"
	mkdir -p "$2"
	if vm_has_pins "$1" "$3"; then
		while read -r package version sum; do
			vm_unpack "$1" "$2" "$package" "$version" "$sum"
		done < <(vm_pins "$1" "$3")
	else
		for p in "${@:4}"; do
			vm_unpack "$1" "$2" "$p"
		done
	fi
}

# What the cache calls the pinned packages by the name @REGEX: a change of the pins fetches anew.
vm_pin_id() { # SUITE REGEX
	vm_pins "$@" | sha256sum | cut -c 1-12
}

# Prints the directory of the kernel of @SUITE, fetched if it is not there; its version is in the
# file "version".
vm_kernel() { # SUITE
	local dir

	dir=$vm_cache/kernel/$1-$(vm_pin_id "$1" linux-)
	if ! test -d "$dir"; then
		vm_lists "$1"
		# shellcheck disable=SC2046 # names of packages
		vm_unpack_pinned "$1" "$dir.new" linux- \
			$(vm_kernel_packages "$1" "linux-image-$(dpkg --print-architecture)" | sort -u)
		vm_kernel_arrange "$dir.new"
		mv "$dir.new" "$dir"
	fi
	echo "$dir"
}

# Prints the directory of virtme-ng, fetched if it is not there. Debian 12 has none of its own.
vm_virtme() {
	local dir

	dir=$vm_cache/virtme-ng-$(vm_pin_id trixie virtme-ng)
	if ! test -d "$dir"; then
		vm_lists trixie
		vm_unpack_pinned trixie "$dir.new" virtme-ng virtme-ng
		mv "$dir.new" "$dir"
	fi
	echo "$dir"
}
