#!/bin/bash
# doctor.sh - doctor names what a machine lacks, each with a cure in one line
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
export TMPDIR=$dir/tmp
mkdir "$TMPDIR"

# ok when FINDING is in state STATE and says SAYS, and the line below has CURE.
finds() { # NAME FINDING STATE SAYS CURE COMMAND...
	local name=$1 what=$2 state=$3 words=$4 cure=$5 said

	shift 5
	said=$("$@" 2>&1)
	if grep -A 1 -E "^$state +$what +.*$words" <<<"$said" | tail -n 1 | grep -qF -- "$cure"; then
		ok "$name"
	else
		fail "$name" "no \"$state $what ... $words\" and \"$cure\" in: $said"
	fi
}

# Runs doctor with a tmpfs on FOLDER that has FILE, which contains TEXT.
changed() { # FOLDER FILE TEXT
	# shellcheck disable=SC2016 # another shell's
	unshare --mount sh -c 'mount -t tmpfs none "$1" && echo "$3" >"$1/$2" && exec "$0" doctor -s /nonexistent' \
		"$ctl" "$@"
}

# Runs doctor where FILE contains TEXT.
bound() { # FILE TEXT
	echo "$2" >"$dir/file"
	# shellcheck disable=SC2016 # another shell's
	unshare --mount sh -c 'mount --bind "$1" "$2" && exec $3 doctor -s /nonexistent' - "$dir/file" "$1" \
		"${as[*]} $ctl"
}

# Runs doctor where perf_event_paranoid is 3, with a daemon that has no CAP_SYS_ADMIN.
starved() {
	local pid

	echo 0x1000 >"$dir/ticks"
	echo 3 >"$dir/file"
	setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin \
		"$BUILD/profild" --replay "$dir/ticks" --socket "$dir/starved" &
	pid=$!
	await "$pid" test -S "$dir/starved"
	# shellcheck disable=SC2016 # another shell's
	unshare --mount sh -c 'mount --bind "$1" "$2" && exec "$3" doctor -s "$4"' - "$dir/file" \
		/proc/sys/kernel/perf_event_paranoid "$ctl" "$dir/starved"
	kill "$pid"
}

apart=(unshare --pid --fork --mount-proc)
test "$(id -u)" -eq 0 || apart=(unshare --map-root-user --pid --fork --mount-proc)

# Runs doctor beside a copy of sleep under the name of a runtime, with VARIABLE in its environment, MAP
# as its perf map and OPTION as its argument. It is process 2 of a pid namespace in which no other runtime can be.
beside() { # NAME [VARIABLE [MAP [OPTION]]]
	cp "$(command -v tail)" "$dir/$1"
	# shellcheck disable=SC2016 # another shell's
	"${apart[@]}" sh -c '
		exec 3<"$0"
		env ${2:+"$2"} "$1" -f /dev/null ${4:+-- "$4"} 2>/dev/null &
		until test "/proc/$!/exe" -ef "$1"; do kill -0 $! || break; done
		test -z "$3" || { mount -t tmpfs none /tmp && touch "/tmp/perf-$!.map"; }
		/proc/self/fd/3 doctor -s /nonexistent' "$ctl" "$dir/$1" "${2:-}" "${3:-}" "${4:-}"
}

# Succeeds if doctor, run beside a runtime, has no finding of it.
finds_none() { # ARGS... of beside()
	local said

	said=$(beside "$@") || test $? -le 5 || return
	! grep "^note *${1%3*} .*process 2" <<<"$said"
}

finds "doctor reports that no daemon answers" profild '(note|lack)' 'does not answer: No such file' 'systemctl enable --now profild.socket' \
	"$ctl" doctor -s "$dir/none"
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).bind(sys.argv[1])' "$dir/stale"
finds "doctor reports a stale socket" profild '(note|lack)' 'its socket is stale' 'systemctl enable' "$ctl" doctor -s "$dir/stale"

if test "$(id -u)" -eq 0 && unshare --mount true 2>/dev/null; then
	as=()
	finds "doctor reports lockdown" lockdown lack confidentiality lockdown=integrity \
		changed /sys/kernel/security lockdown 'none integrity [confidentiality]'
	finds "doctor reports that bpffs is not mounted" bpffs note 'not mounted' 'mount -t bpf bpf /sys/fs/bpf' changed /sys/fs/bpf none none
	finds "doctor reports a low limit of the sample rate" rate note 'at most 500 per second' 'sysctl kernel.perf_event_max_sample_rate' \
		bound /proc/sys/kernel/perf_event_max_sample_rate 500
	sed -n 's/^[0-9a-f]*/0000000000000000/p; 200q' /proc/kallsyms >"$dir/zeros"
	finds "doctor reports that kptr_restrict hides the kernel's names from root" kallsyms note 'kernel.kptr_restrict hides' \
		'sysctl kernel.kptr_restrict=1' bound /proc/kallsyms "$(cat "$dir/zeros")"
	as=(setpriv --bounding-set=-syslog --inh-caps=-syslog)
	finds "doctor reports that a user without CAP_SYSLOG sees no names of the kernel" kallsyms note 'hides addresses from this user' \
		'CAP_SYSLOG' bound /proc/kallsyms "$(cat "$dir/zeros")"
	as=(setpriv --reuid=12345 --regid=12345 --clear-groups)
	finds "doctor reports perf_event_paranoid" paranoia note 'perf_event_paranoid is 3' 'start profild' \
		bound /proc/sys/kernel/perf_event_paranoid 3
	finds "doctor reports that profild may not open perf events, with the drop-in" paranoia note \
		'profild has no CAP_SYS_ADMIN' perf-events.conf starved
	finds "doctor reports missing privileges" privileges lack 'user 12345 may not load BPF programs' 'sudo profilctl' \
		"${as[@]}" "$ctl" doctor -s "$dir/none"
	check "doctor returns 5 when nothing can be profiled" test "$(
		"${as[@]}" "$ctl" doctor -s "$dir/none" >"$dir/out"
		echo $?
	)" -eq 5
	check "doctor reports a pid namespace" grep -qxE 'ok +namespaces +the processes of this pid namespace' \
		<(unshare --pid --fork --mount-proc "$ctl" doctor -s "$dir/none")
	finds "doctor reports a user namespace" namespaces lack 'user namespace' 'without a user namespace' \
		unshare --map-root-user "$ctl" doctor -s "$dir/none"
else
	skip "doctor reports what other machines lack" "needs root and a mount namespace"
fi

for name in node java dotnet python3.12; do
	finds "doctor reports $name without names of compiled code" "${name%3*}" note "process 2: " - beside $name
done
finds "doctor reports the emulator of Erlang" erlang note "process 2: " 'erl +JPperf true' beside beam.smp
finds "doctor reports node by its other name" node note "process 2: " - beside nodejs
check "doctor does not report node with a jitdump" finds_none node '' '' --perf-prof
finds "doctor names the flag of node" node note "process 2: " 'node --perf-basic-prof' beside node
check "doctor does not report node with a perf map" finds_none node '' map
check "doctor does not report node with the flag" finds_none node NODE_OPTIONS=--perf-basic-prof
check "doctor does not report node with the option" finds_none node '' '' --perf-basic-prof
check "doctor does not report a Python that has no such flag" finds_none python3.11

# Sockets and files that profild cannot use are errors.
refused() { # WORDS COMMAND...
	local words=$1

	shift
	"$@" >"$dir/said" 2>&1 && return 1
	grep -q -- "$words" "$dir/said" || { cat "$dir/said"; false; }
}
# shellcheck disable=SC2016 # another shell's
check "profild refuses a descriptor that is no socket" refused 'descriptor 3, passed by LISTEN_FDS' \
	sh -c 'exec 3</dev/null; LISTEN_FDS=1 exec sh -c "LISTEN_PID=\$\$ exec \"\$0\" --socket \"\$1\" --replay /dev/null" "$@"' - "$BUILD/profild" "$dir/unused"
check "profild refuses a directory as its configuration" refused "cannot read $dir: Is a directory" \
	"$BUILD/profild" --config "$dir" --socket "$dir/unused" --replay /dev/null
echo 'no-such-option 1' >"$dir/bad.conf"
check "profild names the line of a bad configuration" refused "$dir/bad.conf:1" \
	"$BUILD/profild" --config "$dir/bad.conf" --socket "$dir/unused" --replay /dev/null

mkdir "$TMPDIR"/profilctl.abcdef
touch -d '10 seconds ago' "$TMPDIR"/profilctl.*
finds "doctor reports the folder of a killed profilctl" sockets note "1 folder of a killed profilctl in $TMPDIR" \
	'the next profilctl' "$ctl" doctor -s "$dir/none"
check "doctor --json has the cures" sh -c \
	"'$ctl' doctor --json -s /nonexistent | jq -e '.findings[] | select(.what == \"sockets\") | .cure'"
finish
