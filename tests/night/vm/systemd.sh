#!/bin/bash
# systemd.sh - a guest with a real systemd, on which the packages are installed
#
# To be sourced.
# shellcheck source=tests/night/vm/kvm.sh
. tests/night/vm/kvm.sh
# shellcheck source=tests/night/vm/image.sh
. tests/night/vm/image.sh

# The second disk: the packages, the tests and what they need.
stage() { # DIR
	mkdir -p "$1/tests/night" "$1/$BUILD/tests/programs"
	cp -r "$BUILD/deb" "$BUILD/deb-next" "$1" || vm_die "there are no packages: 'make deb' builds them"
	rm -r "$1"/deb*/built
	cp -r tests/lib "$1/tests"
	cp -r tests/night/vm "$1/tests/night"
	cp "$BUILD"/tests/programs/split "$BUILD"/tests/programs/split.linked "$1/$BUILD/tests/programs"
	mkdir -p "$1/$BUILD/tests/night/hostile"
	find "$BUILD/tests/night/hostile" -maxdepth 1 -type f -perm -u+x -exec cp {} "$1/$BUILD/tests/night/hostile" ';'
	python3 tests/night/hostile/neighbour.py list >"$1/tests/night/vm/attacks.list" || vm_die "no list of attacks"
	cat >"$1/guest.sh" <<-GUEST
		#!/bin/sh
		BUILD=$BUILD exec /run/vm/tests/night/vm/guest.sh service
	GUEST
	chmod 755 "$1" "$1/guest.sh"
}

# Boots @DIR's disk and prints what the tests there say. Emulated, its CPUs take turns: where both run
# at once, one may go on executing the breakpoint with which the other's kernel has patched its code,
# long after it is gone, and the guest stands still.
boot_systemd() { # DIR CONSOLE
	local stage accel

	accel=$(vm_accel "$1/vmlinuz")
	test "$accel" = kvm || accel=tcg,thread=single
	stage=$(mktemp -d "${TMPDIR:-/tmp}/profil-vm.XXXXXX") || exit 1
	stage "$stage"
	rm -f "$BUILD/vm/stage.img"
	mke2fs -q -t ext4 -d "$stage" "$BUILD/vm/stage.img" 64M >&2 || vm_die "cannot make $BUILD/vm/stage.img"
	rm -rf "$stage"
	timeout --foreground -k 10 "${limit:?}" nice -n 10 "$vm_qemu" -accel "$accel" -cpu max -smp 2 -m 1G \
		-nodefaults -no-reboot -display none -kernel "$1/vmlinuz" -initrd "$1/initrd.img" \
		-append 'root=/dev/vda rw console=ttyS0 quiet' \
		-drive "file=$1/disk.img,if=virtio,format=raw,snapshot=on" \
		-drive "file=$BUILD/vm/stage.img,if=virtio,format=raw,readonly=on" \
		-serial "file:$2" -serial file:/dev/stdout </dev/null
}
