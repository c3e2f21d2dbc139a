#!/bin/bash
# build.sh - make in a clone: the owner of build/, missing tools, and the lists of packages
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

clone=$dir/clone
mkdir -p "$clone"/{bpf,build/deep,debian,include,src/core,systemd}
cp -r Makefile mk vendor "$clone"
cp debian/changelog "$clone/debian"

in_clone() { # ARGS...
	env -u MAKEFLAGS -u MAKELEVEL make -C "$clone" --no-print-directory -s "$@"
}

owners() {
	find "$clone/build" -printf '%u\n' | sort -u
}

if test "$(id -u)" -ne 0; then
	skip "root's make leaves build/ to the owner of the clone" "needs root"
else
	touch "$clone/build/deep/file"
	in_clone help >/dev/null
	check "root's make in root's clone leaves build/ to root" test "$(owners)" = root
	chown 12345:12345 "$clone"
	in_clone help >"$dir/help"
	check "root's make passes the targets on" grep -q '^make deps' "$dir/help"
	check "root's make leaves build/ to the owner of the clone" test "$(owners)" = 12345
	touch "$clone/build/late"
	in_clone no-such-target >/dev/null 2>&1
	check "root's make fails with the failing target" test $? -eq 2
	check "root's failing make leaves build/ to the owner of the clone" test "$(owners)" = 12345
fi

# The message about a missing tool.
said=$(in_clone BPFTOOL=/nonexistent/bpftool build/tools.ok 2>&1)
check "make names the package of a missing tool" \
	grep -q "/nonexistent/bpftool is missing: .* 'apt-get install bpftool'" <<<"$said"

for list in vendor/packages/*; do
	check "each line of ${list##*/} is a package, with or without an architecture" \
		test -z "$(grep -vxE '#.*|[a-z0-9.+-]+( \[[a-z0-9]+\])?' "$list")"
done
check "the package list leaves out those of other architectures" \
	test "$(vendor/packages.sh vm | grep -c '^qemu-system')" -le 1
finish
