#!/usr/bin/python3
# faults.py - daemon and library survive the failure of every system call and every allocation
#
# usage: faults.py BUILD OVER DIR
#
# OVER is replay or kernel, DIR a scratch directory. PROFIL_TEST_FAULTS=all lets each call fail at
# each of its turns, instead of at the first, the middle and the last one; any other value is the
# beginning of the names of the faults to be tried. PROFIL_TEST_FAULTS_STEP=N tries every N-th of
# them. Prints verdicts as lib.sh does.
#
# Under each fault: no process dies of a signal or hangs, a refusal has an errno or a line on stderr,
# granted profiles are right, and the daemon serves the next client and leaves nothing in
# /sys/fs/bpf. A plan of which no fault occurred fails as well.
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
FAILING = os.path.abspath(BUILD + "/tests/programs/failing.so")
TICKS = "0x400000 3\n0x400002\n"
WAIT_S = 60
MUTE_S = 3
# These cannot fail in a live process. A process whose write() fails (MUTE) cannot report an error.
NEVER = {"execve", "exit_group", "exit", "rt_sigreturn", "restart_syscall", "getpid", "gettid",
         "getuid", "geteuid", "getgid", "getegid"}
# libc itself aborts when these fail; and the kernel's brk returns no errno.
LIBC = {"futex", "rt_sigprocmask", "rt_sigaction", "brk"}
# Accesses to the memory of a profiled process: a permanent failure turns its profile off.
MEMORY = {"pread64", "pwrite64", "ioctl"}
AGAIN = {"ENOMEM", "EINTR", "EAGAIN"}
MUTE = {"write", "writev"}
# The first argument says what these do, so each of its values counts as a call of its own.
COMMANDS = {"bpf"}
# A daemon that can never unlink a pin leaves it.
UNPIN = {"unlink", "unlinkat", "rmdir"}
# No kernel interrupts a call each time, or never delivers what poll() reports: EINTR and EAGAIN end
# after so many times.
AGAIN_TIMES = 20


class Wrong(Exception):
    pass


class Daemon:
    """A profild, under a fault or not."""

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
        """Waits for READY=1, for the end, or until a daemon that cannot write has listened for MUTE_S."""
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
        """Ends the daemon by SIGTERM; returns its status."""
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
        """The directory of its pins, which is named after its socket."""
        key = 14695981039346656037
        for byte in self.socket.encode():
            key = (key ^ byte) * 1099511628211 % 2**64
        return f"/sys/fs/bpf/profil-{key:016x}"

    def forget(self):
        """Removes the files of an ended daemon; returns the pins that it had left."""
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
    """Runs the client; returns its status and output."""
    try:
        done = subprocess.run([*prefix, *SERVED], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=WAIT_S, text=True,
                              env=dict(os.environ, PROFIL_SOCKET=daemon.socket, **(env or {})))
    except subprocess.TimeoutExpired:
        raise Wrong("a client hangs")
    if done.returncode < 0:
        raise Wrong(f"a client dies of signal {-done.returncode}: {done.stdout}{done.stderr}")
    return done.returncode, done.stdout + done.stderr


def expect_served(daemon, name, may_refuse, may_turn_off=False):
    """may_refuse and may_turn_off may be functions, which are called after the client has ended."""
    status, said = client(daemon)
    refuse, turn_off = (e() if callable(e) else e for e in (may_refuse, may_turn_off))
    if status == 0 or (status == 3 and refuse) or (status == 1 and turn_off):
        return
    raise Wrong(f"{name} ends with status {status}: {said}")


@dataclasses.dataclass
class Fault:
    """A fault of one run of a program, and the failures that it excuses."""
    name: str
    what: str  # the system call, or "allocation"
    prefix: list = dataclasses.field(default_factory=list)
    env: dict = dataclasses.field(default_factory=dict)
    came: object = None  # returns the processes in which it has occurred so far
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


def injected(trace):
    """The processes in which strace has made a call fail; it counts the turns of each by itself."""
    try:
        with open(trace, errors="replace") as f:
            return {int(line.split()[0]) for line in f if "(INJECTED)" in line}
    except FileNotFoundError:
        return set()


def of_call(call, errno, at, when, for_ever):
    trace = f"{DIR}/trace.{next(numbers)}"
    prefix = ["strace", "-D", "-f", "-o", trace, "-e", f"trace={call}",
              "-e", f"inject={call}:error={errno}:when={when}"]
    return Fault(f"{call} {errno} {at}", call, prefix, {},
                 lambda: injected(trace), for_ever)


def of_allocation(n, count):
    report = f"{DIR}/trace.{next(numbers)}"
    env = {"LD_PRELOAD": FAILING, "FAILING_AT": str(n), "FAILING_REPORT": report}
    return Fault(f"allocation {n} of {count}", "allocation", [], env,
                 lambda: {0} if os.path.exists(report) else set())


def expect_next_served(d, fault):
    """After its fault a daemon refuses nothing; but each of its processes has a fault of its own."""
    before = fault.came()

    def later():
        return not (d.ready and before) or fault.came() != before

    expect_served(d, "the next client", later, lambda: later() and fault.may_turn_off)


def daemon_under(fault):
    """Checks a daemon under a fault."""
    d = Daemon(fault.prefix, fault.env)
    left = []
    try:
        if not d.ended():
            expect_served(d, "the first client", True, fault.may_turn_off)
        if not d.ended() and not fault.for_ever:
            expect_next_served(d, fault)
        status = d.stop()
        if status < 0:
            raise Wrong(f"profild dies of signal {-status}")
        if status and not fault.mute and not d.said().strip():
            raise Wrong(f"profild ends with status {status} and without a message")
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
    """Checks a client under a fault, and its daemon."""
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
    The system calls of a run under strace, in the first thread: how many of each the loader makes,
    until a line that contains begins, and the commands of those that the program makes after that.
    strace counts the turns of each thread by itself.
    """
    path = DIR + "/calls"
    run(["strace", "-D", "-f", "-o", path])
    loader, own, begun, first = collections.Counter(), collections.defaultdict(list), False, None
    with open(path, errors="replace") as f:
        for line in f:
            begun = begun or begins in line
            m = re.match(r"(\d+) +(\w+)\((\w*)", line)
            first = first or (m and m[1])
            if not m or m[1] != first or m[2] in NEVER | LIBC:
                continue
            if begun:
                own[m[2]].append(m[3] if m[2] in COMMANDS else "")
            else:
                loader[m[2]] += 1
    return {call: (loader[call], commands) for call, commands in sorted(own.items())}


def turns(first, commands):
    """The turns at which a call fails once: of each command the first, the middle and the last."""
    chosen = set()
    for command in set(commands):
        at = [first + i for i, c in enumerate(commands) if c == command]
        chosen.update(at if EVERY else (at[0], at[len(at) // 2], at[-1]))
    return sorted(chosen)


def plan(counts):
    """Yields every fault of the system calls."""
    for (call, (loader, commands)), errno in itertools.product(counts.items(), ERRNOS):
        for turn in turns(loader + 1, commands):
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
    """The faults in which one allocation of the daemon fails once."""
    path = DIR + "/allocations"
    run_daemon([], {"LD_PRELOAD": FAILING, "FAILING_REPORT": path})
    with open(path) as f:
        count = int(f.read())
    step = 1 if EVERY else max(1, count // 400)
    return [of_allocation(n, count) for n in range(1, count + 1, step)]


def try_all(faults, under):
    """Tries two faults at a time; returns how often each call failed, and what was wrong."""
    came, wrong = collections.Counter(), []

    def one(fault):
        try:
            under(fault)
        except Wrong as e:
            wrong.append(f"{fault.name}: {e}")
        came[fault.what] += bool(fault.came())

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(one, faults))
    return came, wrong


def verdict(name, faults, under):
    """Runs a plan and prints its verdict."""
    chosen = [f for f in faults if EVERY or f.name.startswith(WHICH)][::STEP]
    if faults and not chosen:
        print(f"skip {name}: none of its faults begins with {WHICH}")
        return "skipped"
    came, wrong = try_all(chosen, under)
    if not came.total():
        wrong.append(f"none of {len(chosen)} faults occurred")
    elif STEP == 1:
        wrong += [f"no fault of {what} occurred" for what, n in came.items() if not n]
    for line in wrong:
        print(f"FAIL {name}: {line}")
    if not wrong:
        print(f"ok {name}: {len(chosen)} faults, of which {came.total()} occurred")
    sys.stdout.flush()
    return "failed" if wrong else "passed"


def main():
    daemon_calls = calls_of(run_daemon, "RLIMIT_NOFILE")
    print(f"profild makes {len(daemon_calls)} system calls: {' '.join(sorted(daemon_calls))}")
    verdicts = [verdict("profild survives the failure of every system call",
                        list(plan(daemon_calls)), daemon_under),
                verdict("profild survives the failure of every allocation",
                        allocations(), daemon_under)]
    if OVER == "replay":  # the library does not depend on the daemon's sampler
        client_calls = calls_of(run_client, "socket(AF_UNIX")
        print(f"libprofil's client makes {len(client_calls)}: {' '.join(sorted(client_calls))}")
        verdicts.append(verdict("libprofil survives the failure of every system call",
                                list(plan(client_calls)), client_under))
    for d in everyone:
        d.stop()
        d.forget()
    print(", ".join(f"{verdicts.count(v)} {v}" for v in ("passed", "failed", "skipped")))
    return "failed" in verdicts or "passed" not in verdicts


try:
    sys.exit(main())
except Wrong as e:  # in a run without a fault
    print(f"FAIL profild serves a client without a fault: {e}")
    print("0 passed, 1 failed, 0 skipped")
    sys.exit(1)
