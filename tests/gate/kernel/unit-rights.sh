#!/bin/bash
# unit-rights.sh - under its unit profild works, and the main process lacks what only its children need
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

needs systemd-analyze "profild works under its unit"
unit=60100 alice=61201 # they need no entry in /etc/passwd
dac_override=$((1 << 1))

# What the unit has on any kernel, and CAP_SYS_ADMIN for one whose perf_event_paranoid is 3.
caps=$(sed -n 's/^AmbientCapabilities=//p' systemd/profild.service | tr '[:upper:]' '[:lower:]' | sed 's/cap_/+/g; s/ /,/g'),+sys_admin
chmod 755 "$dir"
chown "$unit" "$dir"
cp "$BUILD/libprofil.so.1" "$dir/lib.so"
printf 'rate 100\n' >"$dir/conf"
chown root "$dir/conf"
chmod 600 "$dir/conf"

under=(setpriv --reuid="$unit" --regid="$unit" --clear-groups --no-new-privs "--bounding-set=-all,$caps"
	"--inh-caps=-all,$caps" "--ambient-caps=-all,$caps" "$PWD/tests/lib/unit_filter.py" "$PWD/systemd/profild.service")
umask 0 # of the socket of notifications, as that of systemd is
daemon_start --fd-store --config "$dir/conf"
umask 022
under=()

# Ends when another user's buffer has had a sample, and its child's.
cat >"$dir/counts.py" <<'EOF'
import ctypes, os, sys
lib = ctypes.CDLL(sys.argv[1])
lib.profil.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_uint]
buf = (ctypes.c_ushort * 65536)()
def count():
    before = sum(buf)
    while sum(buf) == before:
        if lib.profil_sync():
            os._exit(1)
if lib.profil(buf, 131072, 0, 2):
    sys.exit(1)
count()
pid = os.fork()
count()
if pid == 0:
    os._exit(0)
os._exit(os.waitpid(pid, 0)[1] != 0)
EOF
counts() {
	setpriv --reuid="$alice" --regid="$alice" --clear-groups /usr/bin/python3 "$dir/counts.py" "$dir/lib.so"
}

# The capability sets of all threads of PID, one after the other.
sets() { # NAME PID
	sed -n "s/^$1:[[:space:]]*/0x/p" /proc/"$2"/task/*/status
}

lacks() { # PID
	for set in $(sets CapEff "$1"); do
		((!(set & dac_override))) || { echo "$set"; return 1; }
	done
}

children() {
	cat "/proc/$daemon/task/$daemon/children"
}

# A process of a lane can end meanwhile; the spawner does not.
have() {
	local seen=0 set

	for pid in $(children); do
		set=$(sets CapEff "$pid" 2>/dev/null | head -n 1)
		test "$set" || continue
		(((set & dac_override) != 0)) || { cat "/proc/$pid/status"; return 1; }
		seen=$((seen + 1))
	done
	test "$seen" -gt 0
}

check "another user's buffer and its child's get samples" counts
check "no thread of the main process has CAP_DAC_OVERRIDE in effect" lacks "$daemon"
check "the processes that open the memory of clients have it" have
printf 'no-such-option 1\n' >"$dir/conf"
kill -HUP "$daemon"
check "the main process reads a file of options of root's again" await "$daemon" grep -q no-such-option "$dir/log"
check "then it lacks CAP_DAC_OVERRIDE again" lacks "$daemon"
for pid in $(children); do
	kill -KILL "$pid" # another spawner begins, by the main process
done
check "after the death of all these processes buffers get samples" counts
check "the main process lacks CAP_DAC_OVERRIDE still" lacks "$daemon"
finish
