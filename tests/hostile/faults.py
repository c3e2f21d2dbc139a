#!/usr/bin/python3
# faults.py - every system call and every allocation of daemon and library fails, once and always
#
# usage: faults.py BUILD OVER DIR
#
# OVER is replay or kernel, DIR a scratch directory. PROFIL_TEST_FAULTS=all lets each call fail at
# each of its turns, instead of at the first, the middle and the last one; any other value is the
# name, or the beginning of it, of the only ones to be tried. PROFIL_TEST_FAULTS_STEP=N tries each
# N-th of them only. Prints verdicts as lib.sh does. What must hold under each fault: nobody dies of
# a signal or hangs, what is refused is told by an errno or a line on stderr, what is granted is
# right, the daemon serves the next client, and leaves nothing in /sys/fs/bpf. Faults of which none
# came to pass have shown nothing: that fails, too.
import collections
import concurrent.futures
import dataclasses
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
STEP = int(os.environ.get("PROFIL_TEST_FAULTS_STEP") or 1)
PROFILD = os.path.abspath(BUILD + "/profild")
SERVED = [os.path.abspath(BUILD + "/tests/programs/served.linked"),
          "exact" if OVER == "replay" else "some"]
FAILING = os.path.abspath(BUILD + "/tests/hostile/failing.so")
TICKS = "0x400000 3\n0x400002\n"
WAIT_S = 60
MUTE_S = 3
# These fail for nobody who is alive; and who cannot write (below) has no way to be heard.
NEVER = {"execve", "exit_group", "exit", "rt_sigreturn", "restart_syscall", "getpid", "gettid",
         "getuid", "geteuid", "getgid", "getegid"}
# Without these libc itself gives up; and the kernel's brk has no errno.
LIBC = {"futex", "rt_sigprocmask", "rt_sigaction", "brk"}
# The memory of who is profiled: what fails there for good turns a profile off, as a fault does.
MEMORY = {"pread64", "pwrite64", "ioctl"}
AGAIN = {"ENOMEM", "EINTR", "EAGAIN"}
MUTE = {"write", "writev"}
# Each turn is another call.
MANY = {"bpf"}
# Who can never take a pin away leaves it.
UNPIN = {"unlink", "unlinkat", "rmdir"}
# A call that is interrupted each time, or never has what poll says it has, is nobody's kernel: so
# often, and then no more.
AGAIN_TIMES = 20


class Wrong(Exception):
    pass


class Daemon:
    """A profild of its own, under a fault or not."""

    def __init__(self, prefix=(), env=None):
        self.ready = False
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
        """Until it says so, or ends; who listens and says nothing for a while has no way to."""
        pidfd = os.pidfd_open(self.process.pid)
        waited = 0
        try:
            while waited < MUTE_S or not self.listens():
                ready, _, _ = select.select([notify, pidfd], [], [], 1)
                self.ready = notify in ready and b"READY=1" in notify.recv(512)
                if self.ready or pidfd in ready:
                    return
                waited += not ready
                if waited > WAIT_S:
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

    def pins(self):
        """Where it keeps its maps for the next daemon: a name that its socket makes."""
        key = 14695981039346656037
        for byte in self.socket.encode():
            key = (key ^ byte) * 1099511628211 % 2**64
        return f"/sys/fs/bpf/profil-{key:016x}"

    def forget(self):
        """Also what it could not take away itself; says what that was."""
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)
        pins = self.pins()
        if not os.path.isdir(pins):
            return []
        left = sorted(os.listdir(pins))
        for name in left:
            os.unlink(f"{pins}/{name}")
        os.rmdir(pins)
        return [pins, *left]


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


@dataclasses.dataclass
class Fault:
    """What fails in one run of a program, and what that excuses."""
    name: str
    what: str  # the system call, or "allocation"
    prefix: list = dataclasses.field(default_factory=list)
    env: dict = dataclasses.field(default_factory=dict)
    came: object = None  # says whether it has come to pass by now
    for_ever: bool = False

    @property
    def mute(self):
        return self.what in MUTE

    @property
    def may_turn_off(self):
        return self.what in MEMORY and (self.for_ever or self.errno not in AGAIN)

    @property
    def errno(self):
        return self.name.split()[1]

    @property
    def may_leave(self):
        return self.for_ever and self.what in UNPIN


numbers = itertools.count()


def is_injected(trace):
    """Says whether strace has let a call fail."""
    try:
        with open(trace, errors="replace") as f:
            return "(INJECTED)" in f.read()
    except FileNotFoundError:
        return False


def of_call(call, errno, at, when, for_ever):
    trace = f"{DIR}/trace.{next(numbers)}"
    prefix = ["strace", "-D", "-f", "-o", trace, "-e", f"trace={call}",
              "-e", f"inject={call}:error={errno}:when={when}"]
    return Fault(f"{call} {errno} {at}", call, prefix, {},
                 lambda: is_injected(trace), for_ever)


def of_allocation(n, count):
    report = f"{DIR}/trace.{next(numbers)}"
    env = {"LD_PRELOAD": FAILING, "FAILING_AT": str(n), "FAILING_REPORT": report}
    return Fault(f"allocation {n} of {count}", "allocation", [], env,
                 lambda: os.path.exists(report))


def daemon_under(fault):
    """What must hold of a daemon under a fault."""
    d = Daemon(fault.prefix, fault.env)
    left = []
    try:
        if not d.ended():
            expect_served(d, "the first client", True, fault.may_turn_off)
        if not d.ended() and not fault.for_ever:
            later = not (d.ready and fault.came())
            expect_served(d, "the next client", later, later and fault.may_turn_off)
        status = d.stop()
        if status < 0:
            raise Wrong(f"profild dies of signal {-status}")
        if status and not fault.mute and not d.said().strip():
            raise Wrong(f"profild ends with status {status} and without a word")
    except Wrong as e:
        raise Wrong(f"{e}; profild said: {d.said()}")
    finally:
        if not d.ended():
            d.process.kill()
            d.process.wait()
        left = d.forget()
    if left and not fault.may_leave:
        raise Wrong(f"profild leaves {' '.join(left)}")


shared = threading.local()


def client_under(fault):
    """What must hold of a client under a fault, and of the daemon that it talks to."""
    if not hasattr(shared, "daemon"):
        shared.daemon = Daemon()
        everyone.append(shared.daemon)
    status, said = client(shared.daemon, fault.prefix, fault.env)
    if status not in (0, 3) and not (said.strip() and status in (1, 126, 127)
                                     and "counts" not in said) and not fault.mute:
        raise Wrong(f"the client ends with status {status}: {said}")
    if "are not right" in said:
        raise Wrong(f"the client has wrong counts: {said}")
    expect_served(shared.daemon, "the next client", False)


everyone = []


def calls_of(run, begins):
    """
    The system calls of a run under strace: how many of each the loader makes, until one in which
    "begins" stands, and how many the program itself does, in its first thread: strace counts the
    turns in each.
    """
    path = DIR + "/calls"
    run(["strace", "-D", "-f", "-o", path])
    loader, own, begun, first = collections.Counter(), collections.Counter(), False, None
    with open(path, errors="replace") as f:
        for line in f:
            begun = begun or begins in line
            m = re.match(r"(\d+) +(\w+)\(", line)
            first = first or (m and m[1])
            if m and m[1] == first and m[2] not in NEVER | LIBC:
                (own if begun else loader)[m[2]] += 1
    return {call: (loader[call], n) for call, n in sorted(own.items())}


def turns(call, first, count):
    """At which of its turns a call fails once."""
    if EVERY or call in MANY or count <= 3:
        return range(first, first + count)
    return sorted({first, first + count // 2, first + count - 1})


def plan(counts):
    """All faults of system calls."""
    for (call, (loader, count)), errno in itertools.product(counts.items(), ERRNOS):
        for turn in turns(call, loader + 1, count):
            yield of_call(call, errno, f"at {turn}", turn, False)
        when = f"{loader + 1}+"
        if errno in ("EINTR", "EAGAIN"):
            when = f"{loader + 1}..{loader + AGAIN_TIMES}"
        yield of_call(call, errno, "always", when, True)


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
    run_daemon([], {"LD_PRELOAD": FAILING, "FAILING_REPORT": path})
    with open(path) as f:
        count = int(f.read())
    step = 1 if EVERY else max(1, count // 400)
    return [of_allocation(n, count) for n in range(1, count + 1, step)]


def try_all(faults, under):
    """Two at a time; who came to pass, and what was wrong."""
    came, wrong = collections.Counter(), []

    def one(fault):
        try:
            under(fault)
        except Wrong as e:
            wrong.append(f"{fault.name}: {e}")
        came[fault.what] += fault.came()

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(one, faults))
    return came, wrong


def verdict(name, faults, under):
    """Runs a plan and says how it went."""
    chosen = [f for f in faults if EVERY or f.name.startswith(WHICH)][::STEP]
    if faults and not chosen:
        print(f"skip {name}: none of its faults begins with {WHICH}")
        return "skipped"
    came, wrong = try_all(chosen, under)
    if not came.total():
        wrong.append(f"of {len(chosen)} faults none came to pass")
    elif STEP == 1:
        wrong += [f"no fault of {what} came to pass" for what, n in came.items() if not n]
    for line in wrong:
        print(f"FAIL {name}: {line}")
    if not wrong:
        print(f"ok {name}: {len(chosen)} faults, of which {came.total()} came to pass")
    sys.stdout.flush()
    return "failed" if wrong else "passed"


def main():
    daemon_calls = calls_of(run_daemon, "RLIMIT_NOFILE")
    print(f"profild makes {len(daemon_calls)} system calls: {' '.join(sorted(daemon_calls))}")
    verdicts = [verdict("profild lives with every system call failing",
                        list(plan(daemon_calls)), daemon_under),
                verdict("profild lives with every allocation failing",
                        allocations(), daemon_under)]
    if OVER == "replay":  # whatever its daemon counts with is all the same to the library
        client_calls = calls_of(run_client, "socket(AF_UNIX")
        print(f"libprofil's client makes {len(client_calls)}: {' '.join(sorted(client_calls))}")
        verdicts.append(verdict("libprofil lives with every system call failing",
                                list(plan(client_calls)), client_under))
    for d in everyone:
        d.stop()
        d.forget()
    print(", ".join(f"{verdicts.count(v)} {v}" for v in ("passed", "failed", "skipped")))
    return "failed" in verdicts or "passed" not in verdicts


sys.exit(main())
