# neighbour.py - runs each attack beside a victim of another user, and prints what that costs it
#
# The daemon and the victim that is measured have a realtime priority (manager.run_first()), so that
# the machine's other work costs them nothing. The verdict is on START's net time, without what they
# still waited for a CPU; the table has both. The long form judges the longest START of each run and
# allows 5 ms; the short form, which runs on any machine, judges the 99th percentile and allows 50 ms:
# an attack that makes the daemon wait costs seconds.
# An attack that stops the daemon leaves few STARTs, and shows in both.
#
# usage: neighbour.py BUILD DIRECTORY short|long [all|ATTACK...]
#        neighbour.py list
import os
import resource
import signal
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from manager import PRIORITY, Daemon  # noqa: E402

ATTACKER = 60001  # and those after it
VICTIM = 60020
ACCOUNTS = 60100  # and those after it
SUBORDINATE = 200000  # and those after it: one person's, by neighbour.sh's /etc/subuid
NICE = -15  # of the victim that computes
LEAST = 1000  # STARTs: a percentile of fewer is one of the longest
MARGIN_US = {"short": 50000, "long": 5000}
RUNS_LONG = 5
SETTLE_S = 30
LINGER_S = 1.5  # for which the daemon's clocks go on after the last profile
BEGIN_S = 60
END_S = 60


# One of each kind.
IN_GUEST = [
    ["observers", "targets"],
    ["observers", "stalled"],
    ["observers", "starts"],
    ["clocks", "distinct"],
    ["clocks", "fast"],
    ["children", "9000"],
    ["fuse", "files"],
    ["memory", "mappings"],
]


class Attack:
    """@root: root prepares it. @keeps: what the daemon loads once, and keeps."""

    def __init__(self, name, *command, root=False, keeps=None):
        self.name, self.command, self.root = name, list(command), root
        self.keeps = keeps or {}


def attacks(scale):
    """In the order of the table. @scale: "short" or "long"."""
    children = "10500" if scale == "long" else "9000"
    gib = "48" if scale == "long" else "8"
    ids = ["64" if scale == "long" else "16", str(SUBORDINATE)]
    accounts = ["8", str(ACCOUNTS)]
    return [
        Attack("connections held by 8 users", "connections", "hold", "8", root=True),
        Attack("connections opened and closed", "connections", "churn"),
        Attack("message before the greeting", "connections", "silent"),
        Attack("observers, all that are granted", "observers", "targets"),
        Attack("observers' tables", "observers", "tables"),
        Attack("observers that do not read", "observers", "stalled"),
        Attack("starts of 8193 regions", "observers", "starts"),
        Attack("a period for each connection", "clocks", "distinct"),
        Attack("eight observers at the top rate", "clocks", "fast"),
        Attack("9000 observed children", "children", children),
        Attack("lingering sockets", "descriptors", "linger"),
        Attack("lingering sockets in excess", "descriptors", "excess"),
        Attack("lingering sockets unread", "descriptors", "unread"),
        Attack("lingering sockets early", "descriptors", "early"),
        Attack("epoll as pidfd", "descriptors", "epoll"),
        Attack("FUSE page as cookie", "fuse", "start", root=True),
        Attack("FUSE page as cookie, later", "fuse", "cookie", root=True),
        Attack("FUSE page as buffer", "fuse", "buffer", root=True),
        Attack("FUSE page under mmap_lock", "fuse", "lock", root=True),
        Attack("FUSE page in a user namespace", "fuse", "lock"),
        Attack("FUSE files as descriptors", "fuse", "files", root=True),
        Attack("mmap_lock held by mprotect", "memory", "lock", gib),
        Attack("12,000 dead threads", "memory", "threads"),
        Attack("16,384 mappings", "memory", "mappings"),
        Attack("clients stopped by ptrace", "still", "stopped"),
        Attack("clients that wait for vfork", "still", "vfork"),
        Attack("clients in a frozen cgroup", "still", "frozen", root=True),
        Attack("buffers of userfaultfd", "still", "userfaultfd", root=True),
        Attack("buffers in huge pages", "still", "hugetlb", root=True),
        Attack("buffers in a sealed, cut-off file", "still", "sealed"),
        Attack("buffers of io_uring", "still", "io_uring", root=True),
        Attack("clients without memory", "still", "exhausted", root=True),
        Attack("one person's ids make tables", "ids", "churn", *ids, root=True),
        Attack("one person's ids hold large tables", "ids", "tables", *ids, root=True),
        Attack("one person's ids hold attachments", "ids", "slots", *ids, root=True),
        Attack("one person's ids hold wide scopes", "ids", "wide", *ids, root=True),
        Attack("one person's ids hold events", "ids", "events", *ids, root=True),
        Attack("one person's ids hold off-CPU time", "ids", "off-cpu", *ids, root=True,
               keeps={"fds": 8}),
        Attack("a user's switches under --wall", "ids", "wall", "1", str(ACCOUNTS), root=True,
               keeps={"fds": 8}),
        Attack("a user's switches under --latency", "ids", "latency", "1", str(ACCOUNTS), root=True,
               keeps={"fds": 8}),
        Attack("one person's switches under --wall", "ids", "wall", "4", str(SUBORDINATE), root=True,
               keeps={"fds": 8}),
        Attack("one person's ids hold regions", "ids", "regions", *ids, root=True),
        Attack("8 accounts make tables", "ids", "churn", *accounts, root=True),
        Attack("8 accounts hold large tables", "ids", "tables", *accounts, root=True),
        Attack("8 accounts hold attachments", "ids", "slots", *accounts, root=True),
        Attack("8 accounts hold wide scopes", "ids", "wide", *accounts, root=True),
        Attack("8 accounts hold regions", "ids", "regions", *accounts, root=True),
    ]


class Program:
    """A hostile program, from "under way" until its standard input is closed."""

    def __init__(self, build, env, command, uid):
        user = {} if uid == 0 else {"user": uid, "group": uid, "extra_groups": []}
        self.process = subprocess.Popen(
            [f"{build}/tests/night/hostile/{command[0]}"] + command[1:],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
            process_group=0,
            **user,
        )
        self.results, self.skipped = {}, None
        late = threading.Timer(BEGIN_S, self.signal)
        late.start()
        self.read_until("under way")
        late.cancel()

    def read_until(self, end):
        for line in self.process.stdout:
            words = line.split(None, 2)
            if line.strip() == end:
                return
            if words[0] == "result":
                self.results[words[1]] = int(words[2])
            if words[0] == "skip":
                self.skipped = line.split(None, 1)[1].strip()

    def cpu_s(self):
        """CPU time of the process group so far, ended children included."""
        ticks = 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as f:
                    field = f.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(field[2]) == self.process.pid:
                ticks += sum(map(int, field[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            pass
        self.kill()
        self.read_until(None)
        return self.process.stderr.read()

    def signal(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def kill(self):
        self.signal()
        self.process.wait()


class Victims:
    """One that starts and stops, and one that is profiled throughout, of two users."""

    def __init__(self, build, env, seconds):
        self.process = [
            subprocess.Popen(
                self.command(what, VICTIM + i)
                + [f"{build}/tests/night/hostile/victim", what, str(seconds)],
                stdout=subprocess.PIPE,
                text=True,
                env=env,
            )
            for i, what in enumerate(("starts", "samples"))
        ]

    @staticmethod
    def command(what, uid):
        """The one that is measured runs as the daemon does; the other computes, and must wait."""
        user = [f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        first = ["chrt", "--rr", str(PRIORITY)] if what == "starts" else ["nice", "-n", str(NICE)]
        return first + ["setpriv"] + user

    def results(self):
        starts, samples = ({}, {})
        for out, process in zip((starts, samples), self.process):
            for line in process.communicate()[0].splitlines():
                name, value = line.split()
                out[name] = int(value)
            out["status"] = process.returncode
        return starts, samples


class Measure:
    """The victims' figures of one run."""

    def __init__(self, starts, samples):
        self.p50, self.p99 = starts.get("start_p50", 0), starts.get("start_p99", 0)
        self.max, self.stop_max = starts.get("start_max", 0), starts.get("stop_max", 0)
        self.net, self.net_p99 = starts.get("net_max", 0), starts.get("net_p99", 0)
        self.starts = starts.get("starts", 0)
        self.error = starts.get("error", 0) or samples.get("error", 0)
        self.refused = (not self.starts) + starts.get("refused", 0) + samples.get("refused", 0)
        self.lost = samples.get("lost", 0) + samples.get("gone", 0)
        total = samples.get("total", 0)
        self.adds_up = "total" in samples and total == (
            samples["binned"] + samples["unmatched"] + samples["lost"]
        )
        expected = samples.get("cpu_ns", 0) / max(samples.get("tick_ns", 1), 1)
        self.share = total / expected if expected else 0
        self.work = samples.get("rounds", 0) / max(samples.get("cpu_ns", 1), 1) * 1e6


def middle(measures, name):
    return statistics.median(getattr(m, name) for m in measures)


judged = "net"  # or net_p99
margin_us = MARGIN_US["long"]


def slow(measures, loads):
    """Without the time that victim and daemon waited for a CPU: the machine's other work is noise."""
    return not loads or middle(measures, judged) > middle(loads, judged) + margin_us


def few(loads):
    """Whether too few STARTs are compared with. An attack that leaves few STARTs beside it is slow."""
    return sum(m.starts for m in loads) < LEAST


def steady(measures):
    """Says whether another run could change the verdict. A machine can stall for seconds, once."""
    return not any(m.refused or m.lost for m in measures)


class Suite:
    def __init__(self, build, directory, scale):
        self.build, self.dir = build, directory
        self.seconds = 4.0 if scale == "long" else 1.0
        self.runs = RUNS_LONG if scale == "long" else 1
        self.rows, self.passed, self.failed, self.skipped, self.without = [], 0, 0, 0, 0

    def ok(self, fact, held, why=""):
        if held:
            self.passed += 1
            print("ok", fact)
        else:
            self.failed += 1
            print(f"FAIL {fact}: {why}")
        sys.stdout.flush()

    def victims(self, daemon):
        env = dict(os.environ, PROFIL_SOCKET=daemon.socket)
        return Measure(*Victims(self.build, env, self.seconds).results())

    def unsure(self, measures, loads):
        """More runs: as many as asked for, and as many as the long form's where one is too slow."""
        n = len(measures)
        more = few(loads) or slow(measures, loads) and steady(measures)
        return n < self.runs or (n < RUNS_LONG and more)

    def load(self, daemon, percent):
        """The victims beside so much CPU load, which is no attack."""
        load = Program(self.build, os.environ, ["load", str(percent)], ATTACKER)
        measure = self.victims(daemon)
        load.end()
        return measure

    def settled(self, attack, daemon, before):
        """What is left of an attack after some time: a text, empty for nothing."""
        until = time.monotonic() + SETTLE_S
        while True:
            now = daemon.footprint()
            grown = {k: now[k] - before[k] - attack.keeps.get(k, 0) for k in now}
            left = {k: v for k, v in grown.items() if v > 0}
            if not left or time.monotonic() > until:
                return ", ".join(f"{v} {k}" for k, v in left.items())
            time.sleep(0.5)

    def once(self, attack, daemon):
        """One run beside the attack: its Measure, its CPU time in percent, and why it is void."""
        env = dict(os.environ, PROFIL_SOCKET=daemon.socket)
        program = Program(
            self.build, env, attack.command, 0 if attack.root else ATTACKER
        )
        began, cpu = time.monotonic(), program.cpu_s()
        if program.process.poll() is None and not program.skipped:
            measure = self.victims(daemon)
        percent = int(100 * (program.cpu_s() - cpu) / (time.monotonic() - began))
        void = program.skipped
        if not void and program.process.poll() is not None:
            void = f"ended early, with status {program.process.returncode}"
        said = program.end()
        if void and not program.skipped:
            void += ": " + said
        self.results = program.results
        return (None if void else measure), percent, void

    def run(self, attack):
        directory = f"{self.dir}/{len(self.rows)}-{self.skipped}"
        os.mkdir(directory, 0o755)
        daemon = Daemon(self.build, directory)
        try:
            daemon.start()
            if self.compare(attack, daemon) and daemon.alive():
                status, said = daemon.stop(), daemon.said()
                self.ok(f"the daemon ends well beside {attack.name}, and no sanitizer has complained",
                        status == 0 and "Sanitizer" not in said and "runtime error" not in said,
                        f"status {status}; it said:\n{said[-2000:]}")
        finally:
            daemon.close()

    def load_all(self, daemon):
        """The daemon loads the programs of perf events when they are first needed, and keeps them."""
        subprocess.run([f"{self.build}/profilctl", "record", "-q", "-F", "5000", "-o", os.devnull, "--", "true"],
                       env=dict(os.environ, PROFIL_SOCKET=daemon.socket), check=True)

    def compare(self, attack, daemon):
        self.load_all(daemon)
        alone = self.victims(daemon)
        time.sleep(LINGER_S)
        before = daemon.footprint()
        daemon.reset_watchdog()
        measures, loads, void = [], [], None
        while self.unsure(measures, loads):
            measure, percent, void = self.once(attack, daemon)
            if void:
                self.skipped += 1
                print(f"skip {attack.name}: {void}")
                return False
            measures.append(measure)
            if not daemon.alive():
                break
            loads.append(self.load(daemon, percent))
        gap, alive = daemon.watchdog_gap(), daemon.alive()
        left = self.settled(attack, daemon, before) if alive else "the daemon ended"
        self.judge(attack, daemon, alone, loads or [alone], measures, gap, alive, left)
        return True

    def judge(self, attack, daemon, alone, loads, measures, gap, alive, left):
        worst, beside = middle(measures, judged), middle(loads, judged)
        refused = sum(m.refused for m in measures)
        lost = sum(m.lost for m in measures)
        self.rows.append((attack.name, alone, loads, measures, refused, lost, left or "-"))
        for result, number in self.results.items():
            print(f"  {attack.name}: {number} {result}")
        name = attack.name
        self.ok(f"no START is refused beside {name}", refused == 0,
                f"{refused} of {sum(m.starts for m in measures)}, errno {measures[-1].error}")
        # A profile of one's own has no ring in its path, so that none may be lost.
        self.ok(f"no sample is lost beside {name}", lost == 0, f"{lost}")
        self.ok(f"total = binned + unmatched + lost beside {name}", all(m.adds_up for m in measures))
        fact = f"START takes at most {margin_us // 1000} ms more beside {name} than beside the same load"
        if few(loads):
            self.without += 1
            print(f"no verdict {fact}: {sum(m.starts for m in loads)} STARTs beside the load, less than {LEAST}")
        else:
            self.ok(fact, not slow(measures, loads), f"{worst} us, beside the load {beside} us")
        self.ok(f"the daemon lives and keeps its watchdog quiet beside {name}",
                alive and gap < daemon.watchdog_s,
                f"alive {alive}, {gap:.1f} s without a sign; it said:\n{daemon.said()[-2000:]}")
        self.ok(f"nothing is left of {name}", not left, left)
        if "others" in self.results:
            self.ok(f"another user gets one beside {name}", not self.results["refused"],
                    f"{self.results['refused']} times refused")

    def table(self):
        print("\n%-32s %32s %32s %32s %7s %5s %6s  %s" % (
            "START p50/p99/max (net) in us", "alone", "beside the load", "beside the attack",
            "refused", "lost", "work", "left"))
        for name, alone, loads, measures, refused, lost, left in self.rows:
            columns = [
                "%d/%d/%d (%d)" % tuple(middle(m, k) for k in ("p50", "p99", "max", "net"))
                for m in ([alone], loads, measures)
            ]
            work = middle(measures, "work") / max(middle(loads, "work"), 1e-9)
            print("%-32s %32s %32s %32s %7d %5d %5d%%  %s" % (
                name, *columns, refused, lost, 100 * work, left))


def matches(attack, wanted):
    return wanted in ([], ["all"]) or any(w in attack.name or w in attack.command for w in wanted)


def list_commands():
    """For the guest with systemd, which has no Python and little time: a line for each attack."""
    for attack in attacks("short"):
        if attack.command[:2] in IN_GUEST:
            print(*attack.command)


def main():
    if sys.argv[1] == "list":
        return list_commands()
    global judged, margin_us
    build, directory, scale = sys.argv[1:4]
    judged = "net" if scale == "long" else "net_p99"
    margin_us = MARGIN_US[scale]
    wanted = sys.argv[4:]
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    suite = Suite(build, directory, scale)
    for attack in attacks(scale):
        if matches(attack, wanted):
            suite.run(attack)
    suite.table()
    print(f"{suite.passed} passed, {suite.failed} failed, {suite.skipped} skipped" +
          (f", {suite.without} without a verdict" if suite.without else ""))
    return suite.failed > 0


if __name__ == "__main__":
    sys.exit(main())
