#!/bin/bash
# systemd.sh - boots a guest with a real systemd, installs what was built there, tests the service
#
# usage: tests/vm/systemd.sh
#
# What the guest says is kept in $BUILD/vm/systemd.log, what its kernel says in systemd.console.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/vm/kvm.sh
. tests/vm/kvm.sh
# shellcheck source=tests/vm/image.sh
. tests/vm/image.sh

BUILD=${BUILD:-build}
limit=${PROFIL_VM_S:-1200}
out=$BUILD/vm
stage=$(mktemp -d "${TMPDIR:-/tmp}/profil-vm.XXXXXX") || exit 1
trap 'rm -rf "$stage"' EXIT
trap 'exit 130' INT TERM

# The second disk: an installation, the tests and what they need.
stage() { # DIR
	mkdir -p "$1/tests" "$1/$BUILD/tests/programs"
	env -u MAKEFLAGS make -s install B="$BUILD" DESTDIR="$1/root" PREFIX=/usr || exit 1
	cp -r tests/vm tests/system "$1/tests"
	cp "$BUILD"/tests/programs/split "$BUILD"/tests/programs/split.linked "$1/$BUILD/tests/programs"
	cp "$BUILD/libprofil.so.1" "$1/$BUILD"
	printf '#!/bin/sh\nBUILD=%s PROFIL_TEST_OVER=kernel exec /run/vm/tests/vm/service.sh\n' "$BUILD" >"$1/guest.sh"
	chmod 755 "$1" "$1/guest.sh"
}

# Shows the guest's lines as they come.
boot() { # IMAGE_DIR
	local shown

	rm -f "$out/systemd.log"
	touch "$out/systemd.log"
	tail -q -f --pid=$$ -n +1 "$out/systemd.log" &
	shown=$!
	timeout -k 10 "$limit" nice -n 10 "$vm_qemu" -accel "$(vm_accel "$1/vmlinuz")" -cpu max -smp 2 -m 1G \
		-nodefaults -no-reboot -display none -kernel "$1/vmlinuz" -initrd "$1/initrd.img" \
		-append 'root=/dev/vda rw console=ttyS0 quiet' \
		-drive "file=$1/disk.img,if=virtio,format=raw,snapshot=on" \
		-drive "file=$out/stage.img,if=virtio,format=raw,readonly=on" \
		-serial "file:$out/systemd.console" -serial "file:$out/systemd.log" </dev/null
	kill "$shown"
	wait
}

mkdir -p "$out"
image=$(vm_image bookworm) || exit 1
stage "$stage"
rm -f "$out/stage.img"
mke2fs -q -t ext4 -d "$stage" "$out/stage.img" 64M || vm_die "cannot make $out/stage.img"
boot "$image"
if ! [[ $(tail -n 1 "$out/systemd.log") =~ ^[0-9]+\ passed,\ ([0-9]+)\ failed, ]]; then
	tail -n 50 "$out/systemd.console"
	vm_die "the guest did not come to its end: see above"
fi
test "${BASH_REMATCH[1]}" -eq 0
