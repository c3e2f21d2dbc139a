# escapes.py - attempts of a user to gain rights or reach other users, one by one
#
# usage: escapes.py BUILD DIRECTORY [all|FACT...]
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
from manager import Daemon  # noqa: E402
from outcome import finish, ok, skip  # noqa: E402

ATTACKER, VICTIM = 60001, 60020
SETID_RATE = 5000
SETID_S = 5
LINK_STARTS = 20
LINK_S = 0.4
PENDING = {"link", "bpffs", "second", "namespace"}


class Suite:
    def __init__(self, build, directory):
        self.build, self.dir = build, directory

    def daemon(self, name, **how):
        path = f"{self.dir}/{name}"
        os.mkdir(path, 0o755)
        daemon = Daemon(self.build, path, **how)
        daemon.start()
        return daemon

    def run(self, daemon, program, *args, uid=ATTACKER):
        """Runs a hostile program; returns its results by name, and its stderr."""
        user = {} if uid == 0 else {"user": uid, "group": uid, "extra_groups": []}
        done = subprocess.run(
            [f"{self.build}/tests/night/hostile/{program}", *map(str, args)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            env=dict(os.environ, PROFIL_SOCKET=daemon.socket),
            **user,
        )
        return dict(re.findall(r"^result (\w+) (-?\d+)$", done.stdout, re.M)), done.stderr


def odd(suite):
    daemon = suite.daemon("odd")
    for what, fact in (
        ("fork", "a profiled process forks under a filter that kills at socket()"),
        ("altstack", "profil() runs in a handler on an alternate stack of 8192 bytes"),
        ("cloned", "two processes that share their memory turn a profile on and off"),
    ):
        got, said = suite.run(daemon, "odd", what)
        ok(fact, got == {"signal": "0", "status": "0"}, f"{got} {said}")
    daemon.close()


def setid(suite):
    """Execs a set-user-ID program over and over: SETID_RATE is high enough to sample its start."""
    daemon = suite.daemon("setid", args=["--rate", str(SETID_RATE), "--clock", "cpu-clock"])
    program = f"{suite.dir}/setid/program"
    shutil.copy(os.path.realpath("/bin/true"), program)
    os.chmod(program, 0o4755)
    got, said = suite.run(daemon, "setid", program, SETID_S)
    fact = "no sample of a set-user-ID program's image reaches the profile of its parent"
    print(f"  {got}")
    ok(fact, got.get("outside") == "0" and int(got["samples"]) > 0, f"{got} {said}")
    daemon.close()


def rootless(suite):
    daemon = suite.daemon("rootless")
    victim = subprocess.Popen(["sleep", "60"], user=VICTIM, group=VICTIM, extra_groups=[])
    got, said = suite.run(daemon, "rootless", victim.pid, uid=0)
    victim.kill()
    victim.wait()
    ok("uid 0 without capabilities may not observe another user's process",
       got.get("observe") not in ("0", None), f"{got} {said}")
    ok("uid 0 without capabilities may not observe the machine",
       got.get("machine") not in ("0", None), f"{got} {said}")
    ok("uid 0 without capabilities has an ordinary user's connections",
       0 < int(got.get("connections", 0)) <= 64, f"{got} {said}")
    daemon.close()


def started(suite, *args, env=None):
    """Starts a daemon as root, without a service manager."""
    return subprocess.Popen(
        [f"{suite.build}/profild", *args], stderr=subprocess.PIPE, text=True, env=env
    )


def victim(suite, path, seconds=1):
    """Starts a profiled process of another user."""
    return subprocess.Popen(
        [f"{suite.build}/tests/night/hostile/victim", "samples", str(seconds)],
        stdout=subprocess.PIPE, text=True, user=VICTIM, group=VICTIM, extra_groups=[],
        env=dict(os.environ, PROFIL_SOCKET=path),
    )


def wait_for(condition, seconds=20):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def answers(path):
    """Says whether a daemon sends its HELLO: it listens before it is ready."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        try:
            probe.settimeout(20)
            probe.connect(path)
            return bool(probe.recv(4096))
        except OSError:
            return False


def end(process):
    process.terminate()
    return process.communicate(timeout=30)[1]


def link(suite):
    """A root daemon has its socket in a directory that the attacker may write to."""
    place, secret = f"{suite.dir}/link", f"{suite.dir}/secret"
    os.mkdir(place, 0o777)
    os.chmod(place, 0o777)
    with open(secret, "w"):
        os.chmod(secret, 0o600)
    attacker = subprocess.Popen(
        [f"{suite.build}/tests/night/hostile/link", f"{place}/sock", secret],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        user=ATTACKER, group=ATTACKER, extra_groups=[],
    )
    attacker.stdout.readline()
    followed = 0
    for _ in range(LINK_STARTS):
        daemon = started(suite, "--socket", f"{place}/sock", "--ephemeral")
        time.sleep(LINK_S)
        end(daemon)
        followed += os.stat(secret).st_mode & 0o777 != 0o600
        os.chmod(secret, 0o600)
    replaced = attacker.communicate("")[0].split()[-1]
    ok("a root daemon changes the mode of its socket, not of a link's target",
       followed == 0 and int(replaced) > 0,
       f"{followed} of {LINK_STARTS} starts; {replaced} links were placed")


def bpffs_of(path):
    key = 14695981039346656037
    for byte in path.encode():
        key = (key ^ byte) * 1099511628211 % 2**64
    return f"/sys/fs/bpf/profil-{key:016x}"


def bpffs(suite):
    """The daemon's directory in bpffs already exists and belongs to another user."""
    path = f"{suite.dir}/bpffs.sock"
    os.mkdir(bpffs_of(path))
    os.chown(bpffs_of(path), ATTACKER, ATTACKER)
    daemon = started(suite, "--socket", path)
    wait_for(lambda: answers(path) or daemon.poll() is not None)
    victim(suite, path).communicate()
    pins = os.listdir(bpffs_of(path))
    said = end(daemon)
    shutil.rmtree(bpffs_of(path), ignore_errors=True)
    ok("the daemon does not use another user's directory in bpffs, and logs that",
       not pins and "bpf" in said, f"{len(pins)} pins; it said: {said}")


def second(suite):
    """A daemon that fails to start follows a killed one."""
    path = f"{suite.dir}/second.sock"
    daemon = started(suite, "--socket", path)
    wait_for(lambda: answers(path))
    profiled = victim(suite, path, 4)
    time.sleep(1)
    daemon.kill()
    daemon.communicate()
    failing = started(suite, "--socket", path, "--clock", "cycles")
    try:
        said = failing.communicate(timeout=3)[1]
    except subprocess.TimeoutExpired:
        end(failing)
        said = None
    third = started(suite, "--socket", path)
    got = dict(line.split() for line in profiled.communicate()[0].splitlines())
    end(third)
    shutil.rmtree(bpffs_of(path), ignore_errors=True)
    fact = "a daemon that fails to start leaves the profiles of the killed one before it"
    if said is None:
        skip(fact, "this machine has cycles, so --clock cycles does not fail")
        return
    total, expected = int(got.get("total", 0)), int(got.get("cpu_ns", 0)) / 1e7
    ok(fact, failing.returncode == 1 and 0.8 * expected < total < 1.2 * expected + 5,
       f"status {failing.returncode}, {total} of {expected:.0f} samples: {got}; {said}")


def namespace(suite):
    """A daemon in a pid namespace counts the samples of a process there."""
    path = f"{suite.dir}/namespace.sock"
    script = f"""
        {suite.build}/profild --socket {path} --ephemeral 2>{suite.dir}/namespace.log & daemon=$!
        for i in $(seq 100); do test -S {path} && break; kill -0 $daemon || break; sleep 0.1; done
        PROFIL_SOCKET={path} {suite.build}/tests/night/hostile/victim samples 2
        kill $daemon; wait $daemon"""
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script],
        capture_output=True, text=True, timeout=60,
    )
    got = dict(re.findall(r"^(\w+) (\d+)$", done.stdout, re.M))
    with open(f"{suite.dir}/namespace.log") as f:
        said = f.read()
    expected = int(got.get("cpu_ns", 0)) / 1e7
    works = expected > 10 and int(got.get("binned", 0)) > 0.5 * expected
    ok("profild in a pid namespace counts the samples of a process there", works,
       f"{got} {done.stderr}; it said: {said}")


FACTS = [odd, setid, rootless, link, bpffs, second, namespace]


def main():
    suite = Suite(*sys.argv[1:3])
    wanted = sys.argv[3:]
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for fact in FACTS:
        name = fact.__name__
        if name in wanted or wanted == ["all"] or (not wanted and name not in PENDING):
            fact(suite)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
