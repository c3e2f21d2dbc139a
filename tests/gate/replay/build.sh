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

# The message about missing tools, with apt-get and without.
said=$(in_clone BPFTOOL=/nonexistent/bpftool build/tools.ok 2>&1)
if command -v apt-get >/dev/null; then
	check "make names the package of a missing tool" \
		grep -qx "make: missing: bpftool: run 'sudo make deps' or 'apt-get install bpftool'" <<<"$said"
fi

# The tools of this machine, but for apt's and bpftool.
mkdir "$dir/tools"
for tool in /usr/bin/* /bin/*; do
	case ${tool##*/} in apt* | dpkg* | bpftool) continue ;; esac
	ln -sf "$tool" "$dir/tools"
done
for goal in demo deps build/tools.ok; do
	said=$(PATH=$dir/tools in_clone BPFTOOL=bpftool DEPS=demo "$goal" 2>&1)
	check "make $goal fails where bpftool is missing and there is no apt-get" test $? -ne 0
	check "make $goal names nothing but what is missing, once, and the packages of other distributions" \
		test "$(grep -v '^make: \*\*\*\|^make\[' <<<"$said")" = "make: missing: bpftool
  on Fedora:     dnf install bpftool
  on Arch Linux: pacman -S bpf
  (the names of these packages were not tested)"
done
said=$(PATH=$dir/tools in_clone BPFTOOL=true DEPS=demo deps 2>&1)
check "make deps needs no apt-get where nothing is missing" test "$?$said" = 0

# An apt-get and a dpkg-query for which every package is missing. It says what could start services.
mkdir -p "$dir/fake" "$dir/system/usr/sbin" "$dir/system/run/systemd/system"
cat >"$dir/fake/apt-get" <<'END'
#!/bin/sh
case "$*" in
*--assume-no*)
	echo "0 upgraded, 3 newly installed, 0 to remove and 0 not upgraded."
	echo "Need to get 89.1 MB/90 MB of archives."
	echo "After this operation, 424 MB of additional disk space will be used."
	exit 1
	;;
esac
"$DPKG_ROOT/usr/sbin/policy-rc.d" nginx start
echo "policy $?, presets: $(cat "$DPKG_ROOT"/run/systemd/system-preset/*)" >>"$DPKG_ROOT/services"
END
printf '#!/bin/sh\nexit 1\n' >"$dir/fake/dpkg-query"
chmod 755 "$dir"/fake/*
install_deps() {
	DPKG_ROOT=$dir/system PATH=$dir/fake:$PATH in_clone BPFTOOL=true DEPS=deb deps
}

if test "$(id -u)" -ne 0; then
	skip "make deps starts no service" "needs root"
else
	prints "make deps says how much it will install" "make deps: installs 3 packages, 89.1 MB to fetch, 424 MB on disk, \
for: $(vendor/packages.sh deb | paste -sd' ')
make deps: apt-get writes to build/deps.log" install_deps
	check "make deps keeps services from starting, now and at boot" test "$(cat "$dir/system/services")" = "policy 101, presets: disable *"
	check "make deps removes what keeps services from starting" \
		test -z "$(find "$dir/system" -name 'policy*' -o -name '*.preset')"
	printf '#!/bin/sh\nexit 0\n' >"$dir/system/usr/sbin/policy-rc.d"
	chmod 755 "$dir/system/usr/sbin/policy-rc.d"
	install_deps >/dev/null
	check "make deps leaves the machine's own policy-rc.d" grep -q 'exit 0' "$dir/system/usr/sbin/policy-rc.d"
fi

for list in vendor/packages/*; do
	check "each line of ${list##*/} is a package, with an architecture or with what the build looks for" \
		test -z "$(grep -vxE '#.*|[a-z0-9.+-]+( \[[a-z0-9]+\])?|([a-z0-9.+-]+\s+){3}(tool|library|header) \S+' "$list")"
done
check "the package list leaves out those of other architectures" \
	test "$(vendor/packages.sh vm | grep -c '^qemu-system')" -le 1
finish
