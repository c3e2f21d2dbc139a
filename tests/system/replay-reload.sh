#!/bin/bash
# replay-reload.sh - limits from a file, read again on SIGHUP
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

# The limits are for users: root gives itself up, and looks at a copy that anyone may read.
as=()
test "$(id -u)" -ne 0 || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
cp "$BUILD/tests/programs/split.linked" "$BUILD/libprofil.so.1" "$dir"

profiles() {
	LD_LIBRARY_PATH=$dir "${as[@]}" "$dir/split.linked" 0.05
}

refused() { # BY_WHAT
	if profiles >"$dir/out" 2>&1 || ! grep -q "$1" "$dir/out"; then
		cat "$dir/out"
		return 1
	fi
}

# Writes the file, has it read, and waits until the daemon has said @WORDS of it.
reload() { # FILE_TEXT WORDS
	local said

	said=$(wc -l <"$dir/log")
	echo "$1" >"$dir/conf"
	kill -HUP "$daemon"
	timeout 30 grep -q -m 1 "$2" <(tail -n +$((said + 1)) -f --pid="$daemon" "$dir/log") ||
		fail "SIGHUP" "the daemon did not say '$2': $(cat "$dir/log")"
}

daemon_start --config "$dir/conf"
check "a file that is not there changes nothing" profiles
reload "user-bins 1 # less than any profile has" "limits read again"
check "a lower limit counts after SIGHUP" refused "Cannot allocate memory"
reload "user-bins many" "line 1 is wrong"
check "a wrong value changes nothing" refused "Cannot allocate memory"
reload "socket /elsewhere" "line 1 is wrong"
check "nor does what has no place there" refused "Cannot allocate memory"
reload "user-bins 1 2" "line 1 is wrong"
reload "rate 200" "need a restart"
check "what is no more in the file is as before" profiles
daemon_stop

echo "user-bins 1" >"$dir/conf"
daemon_start --config "$dir/conf"
check "the file counts from the start" refused "Cannot allocate memory"
daemon_stop
echo "user-bins 1" >"$dir/conf"
daemon_start --config "$dir/conf" --user-bins 16777216
check "a later option goes before it" profiles
daemon_stop
echo "restrict-fast yes" >"$dir/conf"
check "a wrong file is refused at the start, with its line" \
	grep -q "line 1 is wrong" <("$BUILD/profild" --config "$dir/conf" --socket "$dir/none" 2>&1)
finish
