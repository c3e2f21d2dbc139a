# capabilities.py - what profild can do without each of its unit's capabilities, on this kernel
#
# With those of the unit all works, where kernel.perf_event_paranoid is below 3. Where it is 3, as some
# distributions' kernels know it, all works with CAP_SYS_ADMIN, which the drop-in adds, and without it what the
# timer tick can do. Each capability is needed for something. In a guest both values are tried.
#
# usage: capabilities.py BUILD DIRECTORY
import json
import os
import platform
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
from manager import Daemon, unit_capabilities  # noqa: E402
from outcome import finish, ok  # noqa: E402

USER = 60001
LIMIT_S = 120
TRIES = 3
SHOWN = 6  # lines of its log, where a daemon does not start
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
DISTRIBUTIONS = 3
TICK = ("profil()", "its child", "record -a", "restart")

CHILD = """
import ctypes, os, sys, time
lib = ctypes.CDLL(sys.argv[1])
lib.profil.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_uint]
buf = (ctypes.c_ushort * 65536)()
code = ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value
if lib.profil(buf, 131072, 0, 2):
    sys.exit(1)
def spin():
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass
    if lib.profil_sync():
        os._exit(1)
spin()
own = sum(buf)
if os.fork() == 0:
    spin()
    os._exit(sum(buf) <= own)
print("own", int(own > 0))
print("child", int(os.wait()[1] == 0))
"""


def run(command, env, **more):
    try:
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT_S, **more)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 255, "", "")


def samples(done):
    """Of a report in JSON."""
    try:
        return json.loads(done.stdout)["samples"]["total"]
    except (ValueError, KeyError):
        return 0


def again(deed):
    """A machine in emulation is late at first: programs are loaded, or the victim is not yet there.

    What lacks a capability fails each time.
    """
    return any(deed() for _ in range(TRIES))


def deeds(build, daemon):
    """What this daemon does, by name."""
    env = dict(os.environ, PROFIL_SOCKET=daemon.socket)
    # Where the user may execute it: not below a home directory of root.
    shutil.copy(f"{build}/libprofil.so.1", f"{daemon.dir}/lib.so")
    shutil.copy(f"{build}/tests/night/hostile/victim", f"{daemon.dir}/victim")
    user = {"user": USER, "group": USER, "extra_groups": []}
    done = run(["/usr/bin/python3", "-c", CHILD, f"{daemon.dir}/lib.so"], env, cwd="/", **user)
    told = dict(line.split() for line in done.stdout.splitlines())
    record = [f"{build}/profilctl", "record", "-q", "-f", "json", "-o", "-"]
    busy = ["sh", "-c", "i=0; while test $i -lt 100000; do i=$((i + 1)); done"]
    return {
        "profil()": told.get("own") == "1",
        "its child": told.get("child") == "1",
        "record -a": samples(run(record + ["-a", "--"] + busy, env)) > 0,
        "record -g": samples(run(record + ["-g", "--"] + busy, env)) > 0,
        "-F 5000": samples(run(record + ["-F", "5000", "--"] + busy, env)) > 0,
        "page faults": samples(run(record + ["-e", "page-faults", "--", "sh", "-c", ":"], env)) > 0,
        "off-CPU": again(lambda: run(record + ["--off-cpu", "--", "sleep", "0.1"], env).returncode == 0),
        "restart": again(lambda: restarts(daemon, env, user)),
    }


def restarts(daemon, env, user):
    """True if a profile continues to count after the daemon was killed."""
    victim = subprocess.Popen([f"{daemon.dir}/victim", "samples", "2"], env=env, stdout=subprocess.PIPE, text=True, **user)
    try:
        victim.wait(0.7)
    except subprocess.TimeoutExpired:
        pass
    daemon.kill()
    daemon.start()
    told = dict(line.split() for line in victim.communicate(timeout=LIMIT_S)[0].splitlines())
    return int(told.get("binned", 0)) > 0 and told.get("gone", "0") == "0"


def without(build, directory, name, capabilities):
    os.mkdir(f"{directory}/{name}", 0o755)
    daemon = Daemon(build, f"{directory}/{name}", capabilities=capabilities)
    try:
        daemon.start()
        return deeds(build, daemon)
    except (RuntimeError, ValueError) as e:
        print("\n".join(f"  {name}: {line}" for line in str(e).strip().splitlines()[-SHOWN:]))
        return {}
    finally:
        daemon.close()


def paranoia(value=None):
    """kernel.perf_event_paranoid, after it was set to @value."""
    with open(PARANOID, "r+" if value is not None else "r") as f:
        if value is not None:
            f.write(f"{value}\n")
            f.flush()
            f.seek(0)
        return int(f.read())


def look(build, directory, paranoid):
    """Runs a daemon with all capabilities, and one without each of them."""
    unit = unit_capabilities() + (["sys_admin"] if paranoid >= DISTRIBUTIONS else [])
    rows = {"all": without(build, directory, "all", unit)}
    for capability in unit:
        rows[capability] = without(build, directory, capability, [c for c in unit if c != capability])
    print(f"  Linux {platform.release()}, perf_event_paranoid {paranoid}")
    for name, row in rows.items():
        lacks = [k for k in rows["all"] if not row.get(k)]
        print(f"  {'all' if name == 'all' else 'no ' + name:20} "
              f"{'does not start' if not row else 'lacks ' + ', '.join(lacks) if lacks else 'does all'}")
    return unit, rows


def judge(unit, rows, where):
    ok(f"{where}: with all capabilities profild starts", rows["all"])
    for deed, done in rows["all"].items():
        ok(f"{where}: with all capabilities: {deed}", done)
    for capability in unit:
        # That has the rights of these two in it.
        if "sys_admin" in unit and capability in ("bpf", "perfmon"):
            continue
        row = rows[capability]
        ok(f"{where}: {capability} is needed", not row or not all(row.values()))
    for deed in TICK if "sys_admin" in unit else []:
        ok(f"{where}: without sys_admin: {deed}", rows["sys_admin"].get(deed))


def main():
    build, directory = os.path.abspath(sys.argv[1]), sys.argv[2]
    before = paranoia()
    try:
        for value in (2, DISTRIBUTIONS) if os.environ.get("PROFIL_TEST_UPHEAVAL") else (before,):
            os.mkdir(f"{directory}/{value}", 0o755)
            judge(*look(build, f"{directory}/{value}", paranoia(value)), f"perf_event_paranoid {value}")
    finally:
        paranoia(before)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
