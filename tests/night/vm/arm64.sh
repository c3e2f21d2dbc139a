#!/bin/bash
# arm64.sh - a guest of another architecture: cross-built here, run there from memory
#
# To be sourced. Its kernel, its C library and all that is linked with are Debian's,
# unpacked and never run here; the compiler is Debian's for cross-building.

# shellcheck source=tests/night/vm/fetch.sh
. tests/night/vm/fetch.sh

vm_arm64_packages=$(vendor/packages.sh guest-arm64 | paste -sd,)

arm64_suites="unit kernel_vectors kernel_profil kernel_places kernel_stacks kernel_observe_scopes kernel_observe_off_cpu"
arm64_suites+=" tests/night/vm/stacks.sh tests/night/vm/jitdump.sh tests/night/vm/python.sh"

# Prints the directory of an arm64 Debian that has been unpacked, not installed.
vm_arm64() {
	local dir archive deb

	dir=$vm_cache/arm64-$(cksum <<<"$vm_arm64_packages" | cut -d ' ' -f 1)
	if ! test -d "$dir"; then
		archive=$(vm_archive bookworm) || exit 1
		mkdir -p "$vm_cache" && rm -rf "$dir.new"
		debootstrap --foreign --arch=arm64 --variant=minbase --keyring="$vm_keyring" \
			--include="$vm_arm64_packages" bookworm "$dir.new" "$archive" >"$dir.log" 2>&1 ||
			vm_die "debootstrap failed: see $dir.log"
		for deb in "$dir.new"/var/cache/apt/archives/*.deb; do
			dpkg -x "$deb" "$dir.new" || vm_die "cannot unpack $deb"
		done
		rm -rf "$dir.new/var/cache/apt/archives"
		mv "$dir.new" "$dir"
	fi
	echo "$dir"
}

# Builds the tests below $BUILD/arm64 with what is in @ROOT.
arm64_build() { # ROOT
	local build=${BUILD:?}/arm64 lib=$1/usr/lib/aarch64-linux-gnu

	env -u MAKEFLAGS PKG_CONFIG_LIBDIR="$lib/pkgconfig:$1/usr/share/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$1" \
		make -s -j"$(nproc)" B="$build" CC="aarch64-linux-gnu-gcc --sysroot=$1" \
		AR=aarch64-linux-gnu-ar OBJCOPY=aarch64-linux-gnu-objcopy all tests >&2
}

# The libraries of @ROOT that the files below @STAGE need, those that these need, and so on.
arm64_libraries() { # ROOT STAGE
	local lib=$2/lib/aarch64-linux-gnu names name known=

	while names=$(find "$2" -type f -exec readelf -d {} + 2>/dev/null |
		sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u) && test "$names" != "$known"; do
		for name in $names; do
			test -e "$lib/$name" || cp -L "$1"/lib/aarch64-linux-gnu/"$name" "$lib" 2>/dev/null ||
				cp -L "$1"/usr/lib/aarch64-linux-gnu/"$name" "$lib" || vm_die "$1 has no $name"
		done
		known=$names
	done
	ln -sf aarch64-linux-gnu/ld-linux-aarch64.so.1 "$2/lib/ld-linux-aarch64.so.1"
}

# All that the guest has: a shell, the tests, and what these look at.
arm64_stage() { # ROOT STAGE
	local build=${BUILD:?}/arm64 here=$2/profil

	mkdir -p "$2"/{bin,dev,proc,sys,tmp,run,etc,lib/aarch64-linux-gnu} "$here/tests/night/vm" "$here/$build/tests"
	cp "$1/bin/busybox" "$1/bin/bash" "$2/bin"
	cp -r tests/vectors "$here/tests"
	cp tests/night/vm/{guest,stacks,jitdump,python}.sh "$here/tests/night/vm"
	mkdir -p "$2/usr/bin" "$2/usr/lib" "$here/tests/programs"
	cp -r tests/programs/shares "$here/tests/programs"
	cp "$1/usr/bin/python3.11" "$2/usr/bin/python3"
	cp -r "$1/usr/lib/python3.11" "$2/usr/lib"
	cp -r tests/lib "$here/tests"
	cp "$build"/{profild,profilctl,libprofil.so.1} "$here/$build"
	cp "$build/libprofil.so.1" "$2/lib/aarch64-linux-gnu"
	cp -r "$build"/tests/{unit-tests,gate-tests,night-tests,programs} "$here/$build/tests"
	rm -f "$here/$build"/tests/programs/*.d
	# Frame pointers would hide wrong rules. It keeps its symbols.
	aarch64-linux-gnu-gcc --sysroot="$1" -O2 -fno-optimize-sibling-calls -fomit-frame-pointer \
		-o "$here/$build/tests/programs/paths" tests/programs/call_paths.c
	aarch64-linux-gnu-gcc --sysroot="$1" -O2 -o "$here/$build/tests/programs/jitdump" tests/programs/jitdump.c
	find "$2" -type f -exec aarch64-linux-gnu-strip -g {} + 2>/dev/null
	arm64_libraries "$1" "$2"
	echo 'root:x:0:0:root:/:/bin/bash' >"$2/etc/passwd"
	cat >"$2/init" <<-GUEST
		#!/bin/busybox sh
		/bin/busybox --install -s /bin
		mount -t proc proc /proc
		mount -t sysfs sysfs /sys
		mount -t devtmpfs devtmpfs /dev
		ln -s /proc/self/fd /dev/fd
		mount -t tmpfs tmpfs /tmp
		mkdir /dev/shm && mount -t tmpfs tmpfs /dev/shm
		cd /profil && BUILD=$build tests/night/vm/guest.sh ${PROFIL_VM_SUITES:-$arm64_suites}
		poweroff -f
	GUEST
	chmod 755 "$2" "$2/init" # users have to reach what is below
}

# Boots the kernel of @ROOT and prints what the tests there say. It has one serial port, which its
# kernel has to share: @CONSOLE is what QEMU says.
boot_arm64() { # ROOT CONSOLE
	local stage

	arm64_build "$1" || vm_die "cannot build for arm64: the packages gcc-aarch64-linux-gnu and libc6-dev-arm64-cross may be missing"
	stage=$(mktemp -d "${TMPDIR:-/tmp}/profil-vm.XXXXXX") || exit 1
	arm64_stage "$1" "$stage"
	(cd "$stage" && find . | cpio -o -H newc --quiet | zstd -q) >"$BUILD/vm/arm64.cpio"
	rm -rf "$stage"
	timeout --foreground -k 10 "${limit:?}" nice -n 10 qemu-system-aarch64 -M virt -cpu cortex-a72 -icount shift=2 -m 1G \
		-nodefaults -no-reboot -display none -kernel "$1"/boot/vmlinuz-* -initrd "$BUILD/vm/arm64.cpio" \
		-append 'console=ttyAMA0 quiet' -serial file:/dev/stdout </dev/null 2>"$2"
}
