#!/bin/bash
# kernel.sh - a guest that has another kernel and the host's files
#
# To be sourced.

# shellcheck source=tests/vm/fetch.sh
. tests/vm/fetch.sh
# shellcheck source=tests/vm/kvm.sh
. tests/vm/kvm.sh

# An emulated CPU whose time is the number of its instructions: its ticks come when they are due, however
# busy the host is. QEMU does not bring up a second one so, and an interrupt just after cmpxchg16b finds
# flags there that no CPU sets (7.2; seen as a double fault): the kernel has another way. But Linux 7.2
# then has no memory for who asks in an interrupt: threads that share a CPU do not get their shares.
vm_emulation="--disable-kvm --cpus 1 --qemu-opts='-icount shift=2 -cpu qemu64,-cx16'"

vm_vmlinuz() { # DIR
	echo "$1/boot/vmlinuz-$(cat "$1/version")"
}

# Boots @DIR's kernel, runs @SUITES there and prints what they say. virtme-ng wants a terminal.
boot_kernel() { # DIR CONSOLE SUITES
	local vng virtme vmlinuz cpus='--cpus 2'

	vmlinuz=$(vm_vmlinuz "$1")
	test "$(vm_accel "$vmlinuz")" = kvm || cpus=$vm_emulation
	virtme=$(vm_virtme)
	vng="vng --verbose $cpus --force-9p --memory 2G"
	vng+=" --run $vmlinuz --exec 'env BUILD=$BUILD tests/vm/guest.sh $3' 2>$2"
	PATH=$virtme/usr/bin:$PATH PYTHONPATH=$virtme/usr/lib/python3/dist-packages \
		timeout --foreground -k 10 "${limit:?}" nice -n 10 script -qec "$vng" /dev/null </dev/null
}
