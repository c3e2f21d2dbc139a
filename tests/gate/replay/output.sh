#!/bin/bash
# output.sh - option -o writes a whole file or none, with the right mode, at the right place
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

# Mounts a small tmpfs, in a mount namespace of its own.
if test "${1:-}" != apart; then
	rm -r "$dir"
	if unshare --mount true 2>/dev/null; then exec unshare --mount "$0" apart; fi
	if unshare --map-root-user --mount true 2>/dev/null; then exec unshare --map-root-user --mount "$0" apart; fi
	mkdir "$dir"
	skip "profilctl reports a full disk" "no mount namespace can be made"
	finish
fi
ctl=$BUILD/profilctl
small=$dir/small
mkdir "$small"
mount -t tmpfs -o size=64k none "$small" || { fail "a small tmpfs is mounted" "cannot mount it"; finish; }

# ok when the command returns STATUS and its message has WORDS.
ends() { # NAME STATUS WORDS COMMAND...
	local name=$1 status=$2 words=$3 got

	shift 3
	"$@" >"$dir/stdout" 2>"$dir/stderr"
	got=$?
	if test "$got" -eq "$status" && grep -qF -- "$words" "$dir/stderr"; then
		ok "$name"
	else
		fail "$name" "$* ended with $got, not $status, and said: $(cat "$dir/stderr")"
	fi
}

sample_profile "$dir/written"
"$ctl" report "$dir/written" -o "$dir/profile"
check "a profile has mode 600 under any umask" test "$(umask 0; "$ctl" report "$dir/profile" \
	-o "$dir/open" && stat -c %a "$dir/open")" = 600
check "a file of another format has the mode of the umask" test "$(umask 027; "$ctl" report "$dir/profile" -f json \
	-o "$dir/json" && stat -c %a "$dir/json")" = 640

# The output file exists.
echo precious >"$dir/kept"
check "a profile replaces a file" "$ctl" report "$dir/profile" -o "$dir/kept"
check "the replaced file is kept as FILE.old" test "$(cat "$dir/kept.old")" = precious
check "the new file is a profile" "$ctl" report "$dir/kept"
cp "$dir/kept" "$dir/first"
check "a profile replaces a profile" "$ctl" report "$dir/profile" -o "$dir/kept"
check "FILE.old is the last replaced profile" cmp "$dir/kept.old" "$dir/first"
echo precious >"$dir/other"
check "another format replaces a file" "$ctl" report "$dir/profile" -f folded -o "$dir/other"
check "a file that another format replaces is not kept" test ! -e "$dir/other.old"
ln -s kept "$dir/link"
check "-o follows a symbolic link" "$ctl" report "$dir/profile" -o "$dir/link"
check "-o keeps a symbolic link" test -L "$dir/link"
check "-o replaces the file behind a symbolic link" cmp "$dir/kept" "$dir/profile"

# The output is a device, a pipe or a directory.
check "-o - writes to standard output" cmp <("$ctl" report "$dir/profile" -o -) "$dir/profile"
check "-o - writes another format to standard output" cmp <("$ctl" report "$dir/profile" -f json -o -) <("$ctl" report "$dir/profile" -f json)
check "-o accepts /dev/null" "$ctl" report "$dir/profile" -o /dev/null
check "-o does not replace a device" test -c /dev/null
mkfifo "$dir/pipe"
cat "$dir/pipe" >"$dir/piped" &
"$ctl" report "$dir/profile" -o "$dir/pipe"
wait $!
check "-o writes into a pipe" cmp "$dir/piped" "$dir/profile"
ends "-o refuses a directory" 1 "cannot write $dir: Is a directory" "$ctl" report "$dir/profile" -o "$dir"
ends "-o refuses a file in a missing directory" 1 "cannot write $dir/no/profile: No such file" \
	"$ctl" report "$dir/profile" -o "$dir/no/profile"

# A full disk.
cp "$dir/profile" "$small/profile"
dd if=/dev/zero of="$small/filler" bs=1k 2>/dev/null
ends "profilctl reports a full disk" 1 \
	"cannot write $small/profile: no space left on device; the file that was there is unchanged" \
	"$ctl" report "$dir/profile" -f html -o "$small/profile"
check "a full disk leaves the old file unchanged" cmp "$dir/profile" "$small/profile"
check "a full disk leaves no temporary file" test "$(ls "$small")" = $'filler\nprofile'
# shellcheck disable=SC2016 # another shell's
ends "profilctl reports that standard output has no space" 1 "cannot write the report: no space left on device" \
	sh -c '"$1" report "$2" -f json >/dev/full' - "$ctl" "$dir/profile"


# The cause is that of the first write that failed, however many buffers a format fills.
tests/programs/stacks.py "$dir/large" large
for format in json folded rows html; do
	for profile in profile large; do
		check "report -f $format of $profile says that the disk is full" grep -q 'no space left on device$' \
			<("$ctl" report -f "$format" -o /dev/full "$dir/$profile" 2>&1)
	done
done

check "diff of large profiles says that the disk is full" grep -q 'no space left on device$' \
	<("$ctl" diff --json -o /dev/full "$dir/large" "$dir/large" 2>&1)
check "--tree of a large profile says that the disk is full" grep -q 'no space left on device$' \
	<("$ctl" report --tree -a -o /dev/full "$dir/large" 2>&1)

# A limit of the size of files is an error like a full disk, not the end by a signal.
said=$( (ulimit -f 0; "$ctl" report "$dir/profile" -o "$dir/limited") 2>&1)
check "profilctl reports that a file may not become larger" test "$?:$said" = "1:profilctl: cannot write $dir/limited: File too large"

# profilctl is killed at the system calls that write, flush and rename.
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
	cp "$dir/profile" "$dir/whole"
	exec 2>/dev/null # bash reports every killed process
	for call in write fsync linkat renameat2; do
		strace -o /dev/null -e inject="$call:signal=KILL:when=1" "$ctl" report "$dir/profile" \
			-o "$dir/whole"
		check "profilctl killed in $call leaves the old profile whole" cmp "$dir/whole" "$dir/profile"
	done
else
	skip "a killed profilctl leaves the old profile whole" "strace cannot trace here"
fi
umount "$small"
# A profile with a place of the kernel that is in no function; the others have none, or one.
kernel() { # NAMED
	sample_profile "$dir/kernel" && python3 -c '
import json, sys
path, named = sys.argv[1:]
p = json.load(open(path))
p["objects"].append({"path": "[kernel]", "build_id": ""})
p["places"] += [[1, 64, 1, 5], [1, 8192, 1, 5]]
p["samples"]["total"] += 10
p["samples"]["binned"] += 10
for offset, name in ((64, named), (8192, "")):
    p["functions"].append({"name": name or "", "object": "[kernel]", "samples": 5, "offset": offset, "size": 64, "named": name != ""})
json.dump(p, open(path, "w"))' "$dir/kernel" "$1" && "$BUILD/profilctl" report "$dir/kernel" | grep -c 'functions of the kernel have no names'
}

check "a kernel without names is told of" test "$(kernel "")" = 1
check "a kernel with a place in no function has names" test "$(kernel do_it)" = 0
finish
