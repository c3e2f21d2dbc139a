# ends.py - what else a user or the machine can do to a daemon: restarts, kills, the log, pids, ids by newuidmap
#
# usage: ends.py BUILD DIRECTORY
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
from manager import Daemon  # noqa: E402
from outcome import finish, ok, skip  # noqa: E402

USER = 60001
OTHER = 60020
SLOTS = 64  # of one user
OWNER = 60040  # of subordinate ids
IDS = 64
LINES_MAX = 40  # that one client may make the daemon log in some seconds
KILLS = 12


def as_user(command, env, uid=USER, **more):
    return subprocess.Popen(command, env=env, user=uid, group=uid, extra_groups=[], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **more)


def starts(build, env, seconds=1, uid=OTHER):
    """How many STARTs a user gets, and how many are refused."""
    out = as_user([f"{build}/tests/night/hostile/victim", "starts", str(seconds)], env, uid).communicate(timeout=60)[0]
    told = dict(line.split() for line in out.splitlines())
    return int(told.get("starts", 0)), int(told.get("refused", 1))


def samples(build, env, seconds, uid=OTHER):
    return as_user([f"{build}/tests/night/hostile/victim", "samples", str(seconds)], env, uid)


def told(process):
    return {k: int(v) for k, v in (x.split() for x in process.communicate(timeout=60)[0].splitlines())}


def workers_are_killed(build, daemon, env):
    """Kills the worker processes, as the kernel does when memory is short."""
    n = 0
    for _ in range(KILLS):
        busy = as_user([f"{build}/tests/night/hostile/victim", "starts", "0.3"], env)
        time.sleep(0.1)
        for pid in daemon.workers():
            try:
                os.kill(int(pid), signal.SIGKILL)
                n += 1
            except OSError:
                pass
        busy.communicate(timeout=60)
        if not daemon.alive():
            break
    ok("the daemon outlives its killed processes", daemon.alive(), daemon.said()[-500:])
    time.sleep(0.5)
    got, refused = starts(build, env)
    ok("another user is served after the kills", n > 0 and got > 0 and not refused,
       f"{n} kills, {got} starts, {refused} refused")


def restarts_race(build, daemon, env):
    """A profile goes on while the daemon is killed and started again, and others start and stop."""
    profiled = samples(build, env, 6)
    time.sleep(0.5)
    for _ in range(4):
        racing = [as_user([f"{build}/tests/night/hostile/victim", "starts", "1"], env, USER + i) for i in range(3)]
        time.sleep(0.2)
        daemon.kill(signal.SIGKILL)
        daemon.start()
        for p in racing:
            p.communicate(timeout=60)
    t = told(profiled)
    ok("a profile adds up over 4 kills of the daemon",
       t.get("total", 0) > 0 and t["total"] == t.get("binned", 0) + t.get("unmatched", 0) + t.get("lost", 0), t)
    got, refused = starts(build, env)
    ok("after 4 kills another user is served", got > 0 and not refused, f"{got} starts, {refused} refused")


def log_of_one_client(build, daemon, env):
    before = daemon.said().count("\n")
    for command in (["connections", "churn"], ["connections", "silent"], ["clocks", "distinct"],
                    ["descriptors", "linger"], ["observers", "starts"], ["observers", "tables"]):
        p = as_user([f"{build}/tests/night/hostile/{command[0]}"] + command[1:], env, stdin=subprocess.PIPE,
                    process_group=0)
        time.sleep(1)
        p.stdin.close()
        try:
            p.wait(20)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        p.wait()
    lines = daemon.said().count("\n") - before
    ok(f"six attacks of one client make the daemon log {LINES_MAX} lines at most", lines <= LINES_MAX,
       f"{lines}: {daemon.said()[-600:]}")


WRAP = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
lib = ctypes.CDLL(sys.argv[1] + "/libprofil.so.1")
buf = (ctypes.c_ushort * 4096)()
lib.profil.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_uint]
for i in range(200):
    pid = os.fork()
    if pid == 0:
        lib.profil(buf, 8192, 0, 65536)
        os._exit(0)
    # The next child has the same pid, where the machine lets this process choose it.
    try:
        with open("/proc/sys/kernel/ns_last_pid", "w") as f:
            f.write(str(pid - 1))
    except OSError:
        pass
    if i % 2:
        os.waitpid(pid, 0)
try:
    while True: os.wait()
except ChildProcessError:
    pass
print(lib.profil_sync())
"""


def pids_are_reused(build, daemon, env):
    p = subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", WRAP, build],
                         env=env, stdout=subprocess.PIPE, text=True)
    said = p.communicate(timeout=100)[0]
    ok("200 processes that reuse pids have run", p.returncode == 0 and said.strip(), f"status {p.returncode}: {said}")
    left, until = [""], time.monotonic() + 20
    while left and time.monotonic() < until:  # the daemon hears of an end a moment later
        listed = subprocess.run([f"{build}/profilctl", "list"], env=env, capture_output=True, text=True).stdout
        left = [x for x in listed.splitlines()[1:] if re.match(r"\s*\d+", x)]
    ok("no profile is left of 200 processes that reuse pids", not left, left[:3])
    ok("the daemon outlives reused pids", daemon.alive())


NEWIDS = """
import ctypes, os, subprocess, sys
r, w = os.pipe()
r2, w2 = os.pipe()
os.set_inheritable(r2, True)
pid = os.fork()
if pid == 0:
    os.close(w2)  # the read ends when the parent does
    if ctypes.CDLL(None).unshare(0x10000000):
        os._exit(77)
    os.write(w, b"x")
    if not os.read(r2, 1):
        os._exit(77)
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    os.execv(sys.argv[1], ["ids", sys.argv[2], sys.argv[3], "1"])
os.read(r, 1)
for tool, own in (("newuidmap", os.getuid()), ("newgidmap", os.getgid())):
    if subprocess.call([tool, str(pid), "0", str(own), "1", "1", "200000", "65536"]):
        sys.exit(77)
os.write(w2, b"x")
os.waitpid(pid, 0)
"""


class Person:
    """User OWNER, whose so many subordinate ids, given by newuidmap, each hold all of @what that they get."""

    def __init__(self, program, env, what):
        self.process = subprocess.Popen(
            ["python3", "-c", NEWIDS, program, what, str(IDS)], env=env, user=OWNER, group=OWNER, extra_groups=[],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0,
            executable=shutil.which("python3", path="/usr/bin:/bin"))
        self.said = ""
        for line in self.process.stdout:
            self.said += line
            if line.strip() == "under way":
                break

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def asked(program, env, what):
    """How often another user is refused one of @what, and how often it is served."""
    said = as_user([program, "ask", what], env, OTHER).communicate(timeout=60)[0]
    return dict((k, int(v)) for k, v in re.findall(r"result (\w+) (\d+)", said))


def ids_by_newuidmap(build, daemon, env):
    """ends.sh has made user OWNER with 65536 subordinate ids."""
    if not shutil.which("newuidmap"):
        skip("ids that newuidmap gives are one account", "no newuidmap: sudo make deps")
        return
    program = f"{daemon.dir}/ids"
    shutil.copy(f"{build}/tests/night/hostile/ids", program)
    for what in ("slots", "wide", "regions", "events", "tables"):
        person = Person(program, env, what)
        held = re.search(r"result held (\d+)", person.said)
        if not held:
            person.end()
            skip(f"{IDS} ids that newuidmap gives hold {what}",
                 f"newuidmap does not let user {OWNER}: not in a mount namespace of its own: {person.said}")
            return
        if what == "slots":
            ok(f"{IDS} ids that newuidmap gives are one account", int(held.group(1)) == SLOTS, person.said)
        got, refused = starts(build, env)
        ok(f"another user starts profiles beside {IDS} ids that hold {held.group(1)} {what} ({got} times)",
           got > 0 and not refused, f"{got} starts, {refused} refused")
        for other in ("regions", "slots", "wide"):
            a = asked(program, env, other)
            ok(f"another user gets {other} beside {IDS} ids that hold {what}",
               a.get("others", 0) > 0 and not a.get("refused", 1), a)
        person.end()


def spool_beside(build, env, folder, seconds):
    """Runs a spool of an interval of 1 s; its status, None while it ran, and what it said."""
    p = subprocess.Popen([f"{build}/profilctl", "machine", "spool", "-i", "1", "--max-size", "1M", folder], env=env,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(seconds)
    status = p.poll()
    p.terminate()
    return status, p.communicate(timeout=20)[0]


def profiles_in(folder):
    return [f for f in os.listdir(folder) if f.startswith("machine-") and os.path.isfile(f"{folder}/{f}") and
            not os.path.islink(f"{folder}/{f}")]


def spool_among_links(build, daemon, env):
    """Links and folders at the names that the spool is about to use, made by another user."""
    folder, precious = f"{daemon.dir}/links", f"{daemon.dir}/precious"
    os.mkdir(folder)
    with open(precious, "w") as f:
        f.write("precious")
    with open(f"{folder}/machine-foreign.json.gz", "w") as f:
        f.write("foreign")
    now = int(time.time())
    for i in range(20):
        name = time.strftime("machine-%Y%m%dT%H%M%SZ", time.gmtime(now + i))
        for seconds in (0, 1, 2):
            path = f"{folder}/{name}-{seconds}s.json.gz"
            if i % 3 == 2:
                os.mkdir(path)
            else:
                os.symlink(precious if i % 3 else "/nonexistent/x", path)
    status, said = spool_beside(build, env, folder, 6)
    with open(precious) as f:
        ok("a spool writes through no link", f.read() == "precious")
    ok("a spool among links goes on", status is None, f"status {status}: {said}")
    ok("a spool leaves files of others alone", os.path.exists(f"{folder}/machine-foreign.json.gz"))


def spool_without_room(build, daemon, env):
    folder = f"{daemon.dir}/full"
    os.mkdir(folder)
    if subprocess.call(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder]):
        skip("a spool on a full file system goes on", "no mount")
        return
    with open(f"{folder}/filler", "wb") as f:
        try:
            f.write(bytes(1 << 20))
        except OSError:
            pass
    status, said = spool_beside(build, env, folder, 4)
    ok("a spool on a full file system goes on, and says so", status is None and "space" in said, f"{status}: {said}")
    ok("it leaves no part of a profile", not profiles_in(folder), os.listdir(folder))
    os.unlink(f"{folder}/filler")
    status, said = spool_beside(build, env, folder, 4)
    ok("with room it writes again", status is None and profiles_in(folder), f"{status}: {said}")
    subprocess.call(["umount", folder])


def spools(build, daemon, env):
    subprocess.run([f"{build}/profilctl", "machine", "on"], env=env, check=True, capture_output=True)
    spool_among_links(build, daemon, env)
    spool_without_room(build, daemon, env)


def main():
    build, directory = sys.argv[1:3]
    build = os.path.abspath(build)
    for fact, test in (("workers", workers_are_killed), ("restarts", restarts_race), ("log", log_of_one_client),
                       ("pids", pids_are_reused), ("ids", ids_by_newuidmap),
                       ("spool", spools)):
        os.mkdir(f"{directory}/{fact}", 0o755)
        daemon = Daemon(build, f"{directory}/{fact}")
        try:
            daemon.start()
            test(build, daemon, dict(os.environ, PROFIL_SOCKET=daemon.socket))
        finally:
            daemon.close()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
