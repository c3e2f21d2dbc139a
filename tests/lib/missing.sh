#!/bin/bash
# missing.sh - recordings that lack samples: of set-id programs and short processes, and for want of room in a table
#
# Each leaves its profile in $dir/json and what profilctl said in $dir/stderr, and returns profilctl's status.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck disable=SC2154 # dir is lib.sh's

needs jq "profilctl says what a profile lacks"
ctl=$(realpath "$BUILD/profilctl")
spin=$dir/spin
user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
who=() # what record_set_id() runs profilctl by
${CC:-gcc} -O2 -g -o "$spin" tests/programs/spin.c -ldl -pthread || exit 1
${CC:-gcc} -O2 -g -o "$dir/deeds" tests/programs/deeds.c -pthread || exit 1
${CC:-gcc} -O2 -g -o "$dir/files" tests/programs/files.c || exit 1
${CC:-gcc} -O2 -g -o "$dir/places" tests/programs/places.c || exit 1

json() { # FILTER
	jq -e -s ".[0] | $1" "$dir/json" >/dev/null || { jq -c "del(.objects, .functions[8:], .places, .folded)" "$dir/json"; false; }
}

# $dir/stderr has a line that matches REGEX.
said() { # REGEX
	grep -Eq -- "$1" "$dir/stderr" || { cat "$dir/stderr"; return 1; }
}

# Makes $dir/setid, which belongs to root, and whose memory its user may not read. Where set-user-ID programs
# have no effect, it skips NAME and fails.
set_id_make() { # NAME
	cp "$spin" "$dir/setid"
	chmod 4755 "$dir/setid"
	if [[ ,$(findmnt -no OPTIONS -T "$dir/setid"), == *,nosuid,* ]]; then
		skip "$1" "$dir is mounted with nosuid"
		return 1
	fi
}

# Makes $dir/setid a program of this user whose file has CAP_NET_RAW instead, as setcap(8) would.
file_capability_make() { # NAME
	local why

	rm -f "$dir/setid"
	cp "$spin" "$dir/setid"
	chmod 755 "$dir/setid"
	if ! why=$(python3 -c 'import os, struct, sys
os.setxattr(sys.argv[1], "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))' "$dir/setid" 2>&1); then
		skip "$1" "no file capabilities here: ${why##*$'\n'}"
		return 1
	fi
}

# Records a shell that runs $spin and then, so many times, the set-user-ID program for SECONDS, and returns 5.
record_set_id() { # TIMES SECONDS OPTION...
	# shellcheck disable=SC2016 # another shell's
	"${who[@]}" "$ctl" record -F 999 "${@:3}" -- sh -c '"$0" split 0.6; for i in $(seq "$3"); do "$1" split "$2"; done; exit 5' \
		"$spin" "$dir/setid" "$2" "$1" 2>"$dir/stderr" >"$dir/json"
}

# Records a process with four children that use SECONDS each. A target may have half of its user's entries: with
# "profild --user-children 6" two children fit beside their parent.
record_children() { # SECONDS OPTION...
	"${user[@]}" "$ctl" record -F 999 "${@:2}" -- "$spin" children "$1" 2>"$dir/stderr" >"$dir/json"
}

# Records into $dir/kept, and reports that.
record_kept() { # OPTION... -- COMMAND...
	local status

	rm -f "$dir/kept" "$dir/json"
	"$ctl" record -o "$dir/kept" "$@" 2>"$dir/stderr"
	status=$?
	test ! -e "$dir/kept" || "$ctl" report -f json "$dir/kept" >"$dir/json" || return
	return "$status"
}

# Records processes of less than a millisecond, most of which end before the timer's next tick, at which -F 50 samples.
record_short() {
	# shellcheck disable=SC2016 # another shell's
	record_kept -F 50 -- sh -c 'i=0; while test $i -lt 1500; do /bin/true; i=$((i + 1)); done'
}

# Records code in 700 files. The table of an attachment has room for 512.
record_files() {
	mkdir "$dir/code"
	record_kept -F 1999 -- "$dir/files" "$dir/code" 700 3
}

# Records 400000 page faults, each at a place of its own. The table of a recording has room for 327680.
record_places() {
	record_kept -e page-faults -- "$dir/places" "$dir/loads" 400000
}

# Records 10000 threads that sleep at a time. The table has room for 8192. $why says why it returns 77: the
# machine does not have so many threads.
# shellcheck disable=SC2034 # for the script that sources this
record_sleepers() {
	record_kept --off-cpu -- "$dir/deeds" crowd 10000 >"$dir/why"
	set -- $?
	why=$(cat "$dir/why")
	return "$1"
}
