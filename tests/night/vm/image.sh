#!/bin/bash
# image.sh - a disk with Debian and a real systemd, made once into the cache
#
# To be sourced. There is one for each list of packages, which is never written to again: each guest writes to a copy
# that goes with it. When it has booted it mounts a second disk at /run/vm, runs guest.sh from
# there, with its output to the second serial port, and goes off.

# shellcheck source=tests/night/vm/fetch.sh
. tests/night/vm/fetch.sh

# What the programs and their test need beside the base system.
vm_image_packages=$(vendor/packages.sh guest | paste -sd,)

vm_image_unit='[Unit]
Description=what the second disk says
SuccessAction=poweroff-force
FailureAction=poweroff-force

[Service]
Type=oneshot
StandardOutput=file:/dev/ttyS1
StandardError=inherit
TimeoutStartSec=infinity
ExecStart=/bin/sh -c "mkdir /run/vm && mount -o ro /dev/vdb /run/vm && exec /run/vm/guest.sh"

[Install]
WantedBy=multi-user.target'

vm_image_configure() { # ROOT
	local name

	echo "$vm_image_unit" >"$1/etc/systemd/system/vm.service"
	echo '/dev/vda / ext4 rw 0 1' >"$1/etc/fstab"
	echo profil-vm >"$1/etc/hostname"
	for name in systemd-networkd systemd-timesyncd; do
		rm -f "$1"/etc/systemd/system/*.wants/$name.service
	done
	chroot "$1" systemctl enable -q vm.service
}

# Prints the directory with disk.img, vmlinuz and initrd.img of @SUITE.
vm_image() { # SUITE
	local name root archive dir

	name=$1-$(cksum <<<"$vm_image_packages" | cut -d ' ' -f 1)
	dir=$vm_cache/image/$name root=$vm_cache/image/$name.root
	if ! test -d "$dir"; then
		archive=$(vm_archive "$1") || exit 1
		rm -rf "$root" "$dir.new"
		mkdir -p "$dir.new"
		debootstrap --variant=minbase --keyring="$vm_keyring" \
			--include="$vm_image_packages,linux-image-cloud-$(dpkg --print-architecture)" \
			"$1" "$root" "$archive" >"$dir.log" 2>&1 || vm_die "debootstrap failed: see $dir.log"
		vm_image_configure "$root" || vm_die "cannot configure the system in $root"
		cp "$root"/boot/vmlinuz-* "$dir.new/vmlinuz"
		cp "$root"/boot/initrd.img-* "$dir.new/initrd.img"
		rm -rf "${root:?}"/boot/* "$root"/var/cache/apt/archives/*.deb
		mke2fs -q -t ext4 -d "$root" "$dir.new/disk.img" 1200M >&2 || vm_die "cannot make $dir.new/disk.img"
		mv "$dir.new" "$dir"
		rm -rf "$root"
	fi
	echo "$dir"
}
