# manager.py - runs profild as the unit does: user, capabilities, system calls, socket, fd store, watchdog
import array
import os
import resource
import re
import signal
import socket
import subprocess
import threading
import time

UID = 60000
PRIORITY = 1  # of daemon and victim: what else the machine does is not measured (run_first())
UNIT = "systemd/profild.service"
WATCHDOG_S = 10
TURN_S = 0.1
PARKED = 4  # workers that the daemon keeps for the next user, with so many descriptors for each
WORKER_FDS = 2
READY_S = 60


def unit_capabilities():
    """The five of the unit file, as setpriv names them."""
    with open(UNIT) as f:
        line = re.search(r"^AmbientCapabilities=(.*)$", f.read(), re.M).group(1)
    return [name.removeprefix("CAP_").lower() for name in line.split()]


def run_first():
    """Gives this process, and what it starts, a CPU before all ordinary processes.

    A START wakes the daemon's main thread and a worker process, six times in turn. With a nice value
    each of them waited for up to 50 ms behind a compiler: EEVDF lets no task run that has had more
    than its share, whatever its weight, and few others on the CPU make that time long.
    """
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))


class Store:
    """The service manager's fd store: descriptors with names, which outlive the daemon."""

    def __init__(self):
        self.held = []
        self.lock = threading.Lock()

    def handle(self, fields, fds):
        with self.lock:
            self.change(fields, fds)

    def change(self, fields, fds):
        name = fields.get("FDNAME", "stored")
        if "FDSTORE" in fields:
            self.held += [(fd, name) for fd in fds]
            return
        for fd in fds:
            os.close(fd)
        if "FDSTOREREMOVE" in fields:
            for fd, _ in [h for h in self.held if h[1] == name]:
                os.close(fd)
            self.held = [h for h in self.held if h[1] != name]

    def clear(self):
        with self.lock:
            for fd, _ in self.held:
                os.close(fd)
            self.held = []


class Daemon:
    """One profild with what systemd does for it. Times are those of time.monotonic()."""

    def __init__(self, build, directory, args=(), capabilities=None, watchdog_s=WATCHDOG_S):
        self.build, self.dir, self.args = build, directory, list(args)
        self.capabilities = unit_capabilities() if capabilities is None else capabilities
        self.watchdog_s = watchdog_s
        self.socket = f"{directory}/sock"
        self.log = f"{directory}/log"
        self.store = Store()
        self.process = None
        self.deaths = []  # wait statuses of daemons that were not asked to end
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.socket)
        os.chmod(self.socket, 0o666)
        self.listener.listen(128)
        self.listener.setblocking(False)
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(f"{directory}/notify")
        os.chmod(f"{directory}/notify", 0o666)
        self.ready = threading.Event()
        self.last_ping = self.worst_gap = 0.0
        self.late = 0.0  # the time since the last ping for which the machine let nothing run
        self.closing = False
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        """Runs as the daemon does: where this thread wakes late, the machine has stalled both."""
        run_first()
        self.notify.settimeout(TURN_S)
        while not self.closing:
            began = time.monotonic()
            try:
                data, control, _, _ = self.notify.recvmsg(4096, socket.CMSG_SPACE(253 * 4))
            except TimeoutError:
                data = None
            self.late += max(0.0, time.monotonic() - began - TURN_S)
            if data is None:
                continue
            fds = array.array("i")
            for level, kind, body in control:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds.frombytes(body[: len(body) - len(body) % 4])
            fields = dict(
                line.partition("=")[::2] for line in data.decode(errors="replace").splitlines()
            )
            self.store.handle(fields, list(fds))
            now = time.monotonic()
            if fields.get("READY") == "1":
                self.ping(now)
                self.ready.set()
            if fields.get("WATCHDOG") == "1":
                self.worst_gap = max(self.worst_gap, self.gap(now))
                self.ping(now)

    def ping(self, now):
        self.last_ping, self.late = now, 0.0

    def gap(self, now):
        return now - self.last_ping - self.late

    def enter(self, handed):
        """In the child: the descriptors from 3 on, and the environment of sd_listen_fds()."""
        run_first()
        files = min(524288, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        base = files // 2  # out of the way of the places that they go to
        high = [os.dup2(fd, base + i) for i, (fd, _) in enumerate(handed)]
        for i, fd in enumerate(high):
            os.dup2(fd, 3 + i, inheritable=True)
            os.close(fd)

    def command(self, handed):
        caps = ",".join("+" + c for c in self.capabilities)
        script = 'export LISTEN_PID=$$ WATCHDOG_PID=$$; exec "$@"'
        command = ["sh", "-c", script, "sh", "setpriv", f"--reuid={UID}", f"--regid={UID}"]
        command += ["--clear-groups", "--no-new-privs", f"--bounding-set=-all,{caps}"]
        command += [f"--inh-caps=-all,{caps}", f"--ambient-caps=-all,{caps}"]
        command += ["tests/lib/unit_filter.py", UNIT, f"{self.build}/profild", "--fd-store", "--socket", self.socket]
        return command + self.args

    def start(self):
        """Returns the seconds until READY=1."""
        handed = [(self.listener.fileno(), "profild.socket")] + self.store.held
        env = dict(
            os.environ,
            NOTIFY_SOCKET=f"{self.dir}/notify",
            WATCHDOG_USEC=str(int(self.watchdog_s * 1e6)),
            LISTEN_FDS=str(len(handed)),
            LISTEN_FDNAMES=":".join(name for _, name in handed),
        )
        self.ready.clear()
        began = time.monotonic()
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                self.command(handed),
                stderr=log,
                env=env,
                close_fds=False,
                preexec_fn=lambda: self.enter(handed),
            )
        while not self.ready.wait(0.1):
            if self.process.poll() is not None or time.monotonic() - began > READY_S:
                raise RuntimeError("profild did not become ready:\n" + self.said())
        return time.monotonic() - began

    def said(self):
        with open(self.log) as f:
            return f.read()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def watchdog_gap(self):
        """The longest time without a keep-alive message so far, in seconds, but for the machine's stalls."""
        return max(self.worst_gap, self.gap(time.monotonic()))

    def reset_watchdog(self):
        self.worst_gap = 0.0

    def kill(self, number=signal.SIGKILL, wait_s=30):
        self.process.send_signal(number)
        return self.process.wait(wait_s)

    def stop(self):
        """By SIGTERM: the exit status, or None where there was no daemon or it did not end."""
        status = None
        if self.alive():
            try:
                status = self.kill(signal.SIGTERM)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.store.clear()
        return status

    def close(self):
        self.stop()
        self.closing = True
        self.listener.close()

    def footprint(self):
        """What the daemon holds: descriptors, workers, bytes of BPF maps, BPF links."""
        base = f"/proc/{self.process.pid}"
        fds = links = 0
        maps = {}
        for fd in os.listdir(base + "/fd"):
            fds += 1
            try:
                with open(f"{base}/fdinfo/{fd}") as f:
                    text = f.read()
            except OSError:
                continue
            links += "link_type:" in text
            if "map_id:" in text:
                field = dict(re.findall(r"^(\w+):\s*(\S+)", text, re.M))
                maps[field["map_id"]] = int(field.get("memlock", 0))
        workers = len(self.workers())
        return {
            "fds": fds - WORKER_FDS * workers,
            "workers": max(workers - PARKED, 0),
            "links": links,
            "map KiB": sum(maps.values()) // 1024,
        }

    def workers(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            return f.read().split()
