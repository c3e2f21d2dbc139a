#!/usr/bin/python3
# faults.py - every system call and every allocation of daemon and library fails, once and always
#
# usage: faults.py BUILD OVER DIR
#
# OVER is replay or kernel, DIR a scratch directory. PROFIL_TEST_FAULTS=all lets each call fail at
# each of its turns, instead of at the first, the middle and the last one; any other value is the
# name, or the beginning of it, of the only ones to be tried. Prints verdicts as lib.sh
# does. What must hold under each fault: nobody dies of a signal or hangs, what is refused is told
# by an errno or a line on stderr, what is granted is right, and the daemon serves the next client.
import collections
import concurrent.futures
import itertools
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

BUILD, OVER, DIR = sys.argv[1:4]
ERRNOS = ["ENOMEM", "EMFILE", "EINTR", "EAGAIN", "EPERM", "ENOSPC"]
WHICH = os.environ.get("PROFIL_TEST_FAULTS", "")
EVERY = WHICH == "all"
PROFILD = os.path.abspath(BUILD + "/profild")
SERVED = [os.path.abspath(BUILD + "/tests/programs/served.linked"),
          "exact" if OVER == "replay" else "some"]
FAILING = os.path.abspath(BUILD + "/tests/hostile/failing.so")
TICKS = "0x400000 3\n0x400002\n"
WAIT_S = 60
# These fail for nobody who is alive; and who cannot write (below) has no way to be heard.
NEVER = {"execve", "exit_group", "exit", "rt_sigreturn", "restart_syscall", "getpid", "gettid",
         "getuid", "geteuid", "getgid", "getegid"}
# Without these libc itself gives up.
LIBC = {"futex", "rt_sigprocmask", "rt_sigaction"}
# The memory of who is profiled: what fails there for good turns a profile off, as a fault does.
MEMORY = {"pread64", "pwrite64", "ioctl"}
AGAIN = {"ENOMEM", "EINTR", "EAGAIN"}
MUTE = {"write", "writev"}
# A call that is interrupted each time, or never has what poll says it has, is nobody's kernel: so
# often, and then no more.
AGAIN_TIMES = 20


class Wrong(Exception):
    pass


class Daemon:
    """A profild of its own, under a fault or not."""

    def __init__(self, prefix=(), env=None):
        self.dir = tempfile.mkdtemp(dir=DIR)
        self.socket = self.dir + "/sock"
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify.bind(self.dir + "/notify")
        argv = [*prefix, PROFILD, "--socket", self.socket]
        if OVER == "replay":
            with open(self.dir + "/ticks", "w") as f:
                f.write(TICKS)
            argv += ["--replay", self.dir + "/ticks"]
        else:
            argv += ["--rate", "1009"]
        self.log = open(self.dir + "/log", "wb+")
        self.process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log,
            env=dict(os.environ, NOTIFY_SOCKET=self.dir + "/notify", **(env or {})))
        try:
            self.await_ready(notify)
        except Wrong:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            notify.close()

    def await_ready(self, notify):
        """Until it says so, or ends; whoever cannot say so listens all the same, or never will."""
        pidfd = os.pidfd_open(self.process.pid)
        try:
            while not self.listens():
                ready, _, _ = select.select([notify, pidfd], [], [], 1)
                if pidfd in ready:
                    return
                if notify in ready:
                    notify.recv(512)
                self.waited = getattr(self, "waited", 0) + (not ready)
                if self.waited > WAIT_S:
                    raise Wrong("profild neither listens nor ends")
        finally:
            os.close(pidfd)

    def listens(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            return s.connect_ex(self.socket) == 0

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def ended(self):
        return self.process.poll() is not None

    def stop(self):
        """Ends it; the status, or Wrong."""
        try:
            if not self.ended():
                self.process.send_signal(signal.SIGTERM)
            return self.process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            raise Wrong("profild does not end by SIGTERM")
        finally:
            if not self.ended():
                self.process.kill()
                self.process.wait()

    def forget(self):
        """Also what it could not take away itself: its maps, under a name that its socket makes."""
        key = 14695981039346656037
        for byte in self.socket.encode():
            key = (key ^ byte) * 1099511628211 % 2**64
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)
        pins = f"/sys/fs/bpf/profil-{key:016x}"
        for name in os.listdir(pins) if os.path.isdir(pins) else []:
            os.unlink(f"{pins}/{name}")
        if os.path.isdir(pins):
            os.rmdir(pins)


def client(daemon, prefix=(), env=None):
    """Runs the client; its status and what it said."""
    try:
        done = subprocess.run([*prefix, *SERVED], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=WAIT_S, text=True,
                              env=dict(os.environ, PROFIL_SOCKET=daemon.socket, **(env or {})))
    except subprocess.TimeoutExpired:
        raise Wrong("a client hangs")
    if done.returncode < 0:
        raise Wrong(f"a client dies of signal {-done.returncode}: {done.stdout}{done.stderr}")
    return done.returncode, done.stdout + done.stderr


def expect_served(daemon, who, may_refuse, may_turn_off=False):
    status, said = client(daemon)
    if status == 0 or (status == 3 and may_refuse) or (status == 1 and may_turn_off):
        return
    raise Wrong(f"{who} ends with status {status}: {said}")


def inject(call, errno, when):
    return ["strace", "-D", "-f", "-o", "/dev/null", "-e", f"trace={call}",
            "-e", f"inject={call}:error={errno}:when={when}"]


def daemon_under(prefix, env, for_ever, mute, may_turn_off):
    """What must hold of a daemon under a fault."""
    d = Daemon(prefix, env)
    try:
        if not d.ended():
            expect_served(d, "the first client", True, may_turn_off)
        if not d.ended() and not for_ever:
            expect_served(d, "the next client", False)
        status = d.stop()
        if status < 0:
            raise Wrong(f"profild dies of signal {-status}")
        if status and not mute and not d.said().strip():
            raise Wrong(f"profild ends with status {status} and without a word")
    except Wrong as e:
        raise Wrong(f"{e}; profild said: {d.said()}")
    finally:
        if not d.ended():
            d.process.kill()
            d.process.wait()
        d.forget()


shared = threading.local()


def client_under(prefix, env, mute):
    """What must hold of a client under a fault, and of the daemon that it talks to."""
    if not hasattr(shared, "daemon"):
        shared.daemon = Daemon()
        everyone.append(shared.daemon)
    status, said = client(shared.daemon, prefix, env)
    if status not in (0, 3) and not (said.strip() and status in (1, 126, 127)
                                     and "counts" not in said) and not mute:
        raise Wrong(f"the client ends with status {status}: {said}")
    if "are not right" in said:
        raise Wrong(f"the client has wrong counts: {said}")
    expect_served(shared.daemon, "the next client", False)


everyone = []


def calls_of(run, begins):
    """
    The system calls of a run under strace: how many of each the loader makes, until one in which
    "begins" stands, and how many the program itself does.
    """
    path = DIR + "/calls"
    run(["strace", "-D", "-f", "-o", path])
    loader, own, begun = collections.Counter(), collections.Counter(), False
    with open(path, errors="replace") as f:
        for line in f:
            begun = begun or begins in line
            m = re.match(r"\d+ +(\w+)\(", line)
            if m and m[1] not in NEVER | LIBC:
                (own if begun else loader)[m[1]] += 1
    return {call: (loader[call], n) for call, n in sorted(own.items())}


def turns(first, count):
    """At which of its turns a call fails once."""
    if EVERY or count <= 3:
        return range(first, first + count)
    return sorted({first, first + count // 2, first + count - 1})


def plan(counts, under):
    """All faults of system calls: (name, function to call)."""
    for (call, (loader, count)), errno in itertools.product(counts.items(), ERRNOS):
        mute = call in MUTE
        off = call in MEMORY and errno not in AGAIN
        for turn in turns(loader + 1, count):
            yield f"{call} {errno} at {turn}", under(inject(call, errno, turn), None, False, mute, off)
        when = f"{loader + 1}+"
        if errno in ("EINTR", "EAGAIN"):
            when = f"{loader + 1}..{loader + AGAIN_TIMES}"
        yield f"{call} {errno} always", under(inject(call, errno, when), None, True, mute,
                                            call in MEMORY)


def of_daemon(prefix, env, for_ever, mute, may_turn_off=False):
    return lambda: daemon_under(prefix, env, for_ever, mute, may_turn_off)


def of_client(prefix, env, for_ever, mute, _):
    return lambda: client_under(prefix, env, mute)


def run_daemon(prefix, env=None):
    d = Daemon(prefix, env)
    expect_served(d, "a client", False)
    d.stop()
    d.forget()


def run_client(prefix):
    d = Daemon()
    client(d, prefix)
    d.stop()
    d.forget()


def allocations():
    """Each allocation of the daemon fails once."""
    path = DIR + "/allocations"
    run_daemon([], {"LD_PRELOAD": FAILING, "FAILING_COUNT": path})
    with open(path) as f:
        count = int(f.read())
    if not EVERY:
        step = max(1, count // 400)
    for n in range(1, count + 1, 1 if EVERY else step):
        yield (f"allocation {n} of {count}",
               of_daemon([], {"LD_PRELOAD": FAILING, "FAILING_AT": str(n)}, False, False))


def verdict(name, plan):
    """Runs a plan, two faults at a time, and says how it went."""
    plan = [case for case in plan if EVERY or case[0].startswith(WHICH)]
    failed = []

    def one(case):
        try:
            case[1]()
        except Wrong as e:
            failed.append(f"{case[0]}: {e}")

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(one, plan))
    for line in failed:
        print(f"FAIL {name}: {line}")
    if not failed:
        print(f"ok {name}: {len(plan)} faults")
    sys.stdout.flush()
    return not failed


def main():
    daemon_calls = calls_of(run_daemon, "RLIMIT_NOFILE")
    client_calls = calls_of(run_client, "socket(AF_UNIX")
    print(f"profild makes {len(daemon_calls)} system calls: {' '.join(sorted(daemon_calls))}")
    print(f"libprofil's client makes {len(client_calls)}: {' '.join(sorted(client_calls))}")
    good = [verdict("profild lives with every system call failing",
                    plan(daemon_calls, of_daemon)),
            verdict("libprofil lives with every system call failing",
                    plan(client_calls, of_client)),
            verdict("profild lives with every allocation failing", allocations())]
    for d in everyone:
        d.stop()
        d.forget()
    print(f"{sum(good)} passed, {len(good) - sum(good)} failed, 0 skipped")
    return not all(good)


sys.exit(main())
