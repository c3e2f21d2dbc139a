#!/bin/bash
# kernel.sh - a guest that has another kernel and the host's files
#
# To be sourced.

# shellcheck source=tests/night/vm/fetch.sh
. tests/night/vm/fetch.sh
# shellcheck source=tests/night/vm/kvm.sh
. tests/night/vm/kvm.sh

# An emulated CPU whose clock counts its instructions (-icount), so its ticks are on time however busy the
# host is. With it QEMU 7.2 does not bring up a second CPU, and an interrupt just after cmpxchg16b finds
# flags that no CPU sets (a double fault), so cx16 is off. But without it Linux 7.2 cannot allocate BPF
# memory in an interrupt, so threads that share a CPU do not get their exact shares of the samples.
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
	vng+=" --run $vmlinuz --exec 'env BUILD=$BUILD tests/night/vm/guest.sh $3' 2>$2"
	PATH=$virtme/usr/bin:$PATH PYTHONPATH=$virtme/usr/lib/python3/dist-packages \
		timeout --foreground -k 10 "${limit:?}" nice -n 10 script -qec "$vng" /dev/null </dev/null
}
