#!/bin/bash
# reload.sh - limits from a file, read again on SIGHUP
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

# The limits are per user and root is exempt: the programs run as user nobody, from copies in $dir.
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

said_since() { # LINES WORDS
	tail -n +$(($1 + 1)) "$dir/log" | grep "$2"
}

# Writes the file, sends SIGHUP, and waits until the daemon has logged WORDS.
reload() { # FILE_TEXT WORDS
	local said

	said=$(wc -l <"$dir/log")
	echo "$1" >"$dir/conf"
	kill -HUP "$daemon"
	await "$daemon" said_since "$said" "$2" || fail "SIGHUP" "the daemon did not say '$2'"
}

daemon_start --config "$dir/conf"
check "a missing configuration file changes nothing" profiles
reload "user-bins 1 # less than any profile has" "limits reloaded"
check "SIGHUP applies a lower limit" refused "Cannot allocate memory"
reload "user-bins many" "conf:1: invalid option"
check "an invalid value leaves the limits unchanged" refused "Cannot allocate memory"
reload "socket /elsewhere" "conf:1: invalid option"
check "an option that the file may not have leaves the limits unchanged" refused "Cannot allocate memory"
reload "user-bins 1 2" "conf:1: invalid option"
reload "rate 200" "need a restart"
check "a limit that is removed from the file returns to its default" profiles
daemon_stop

echo "user-bins 1" >"$dir/conf"
daemon_start --config "$dir/conf"
check "the file applies from the start" refused "Cannot allocate memory"
daemon_stop
echo "user-bins 1" >"$dir/conf"
daemon_start --config "$dir/conf" --user-bins 16777216
check "a later option on the command line overrides the file" profiles
daemon_stop
echo "restrict-fast yes" >"$dir/conf"
check "profild refuses to start with an invalid file, and names the line" \
	grep -q "conf:1: invalid option" <("$BUILD/profild" --config "$dir/conf" --socket "$dir/none" 2>&1)
finish
