#!/bin/bash
# demo.sh - profiles a real program on a real file, with no daemon set up beforehand
set -u
cd "$(dirname "$0")/.." || exit 1

BUILD=${BUILD:-build}
lack=
test "$(id -u)" -eq 0 || lack="this needs root, to count in the kernel: sudo make demo"
test -r /sys/kernel/btf/vmlinux ||
	lack="this kernel has no /sys/kernel/btf/vmlinux: boot one with CONFIG_DEBUG_INFO_BTF=y, as Debian's are"
if test "$lack"; then
	echo "make demo: $lack" >&2
	exit 1
fi

dir=$(mktemp -d "${TMPDIR:-/tmp}/profil-demo.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

# Source text that every build machine has.
find /usr/include /usr/share/perl /usr/lib/python3 -type f -readable -print0 2>/dev/null | sort -z |
	xargs -0 cat 2>/dev/null | head -c 24000000 >"$dir/text"

cat >"$dir/words.pl" <<'PERL'
while (<>) { $count{lc $_}++ for /\w+/g; $lines{$_}++ }
printf "%7d %s\n", $count{$_}, $_ for (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0..4];
PERL

set -- "$BUILD/profilctl" record -F 999 -- perl "$dir/words.pl" "$dir/text"
printf 'The commonest words in %s of source text, and what finding them took:\n\n$ %s\n' \
	"$(du -h --apparent-size "$dir/text" | cut -f 1)" "${*//"$dir"\//}"
"$@" 2>&1 # the report is on standard error
