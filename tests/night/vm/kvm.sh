#!/bin/bash
# kvm.sh - whether guests run on KVM here, or in emulation
#
# To be sourced.

vm_qemu=qemu-system-$(uname -m)

# Prints "kvm" or "tcg", and keeps the answer for the next guest. A /dev/kvm that is there may still
# hang its guests: only one that has come to its end shows that it works. Without a root to mount, a
# kernel gets there by a panic.
vm_accel() { # VMLINUZ
	local answer=$BUILD/vm/accel

	test -s "$answer" || vm_probe "$1" >"$answer"
	cat "$answer"
}

vm_probe() { # VMLINUZ
	if test -w /dev/kvm && timeout -k 5 20 "$vm_qemu" -accel kvm -cpu max -m 512M -nodefaults -no-reboot \
		-display none -kernel "$1" -append 'panic=-1' </dev/null >/dev/null 2>&1; then
		echo kvm
	else
		echo "guests run in emulation, which takes minutes each: there is no /dev/kvm that works" >&2
		echo tcg
	fi
}
