#!/usr/bin/python3
# stacks.py - how many stacks are whole, and whether they are right, against perf record --call-graph dwarf
#
# usage: tests/night/bench/stacks.py [judge|whole] [PROGRAM...]    as root, after make; STACKS_S seconds a run, STACKS_HZ
#
# Each program runs under profilctl record -g, twice, and under perf record, one after the other: the second
# time with what the first has put into the cache. A stack is whole when its outermost frame is where a thread
# starts, in a stripped program the caller of __libc_start_main. "CPU s" is what the profiler's own processes
# took, the daemon and all up to names included, without the program. profilctl names inlined functions, too;
# perf's "inlined" is what the second perf script takes that does so, with its addr2line, in addition to perf
# record. "rules KiB" is what the cache has of the program and its libraries.
#
# Inclusive shares of functions are compared with a third run, for which perf copies 64 KB of each stack
# instead of 8. A stack that is cut may have gone through any function, so that a function's share is known
# only to lie between that of the stacks that show it, and that plus all cut ones that do not. "off" says how
# many functions have ranges that do not meet, with three standard deviations between them: by chance
# one of 370, in runs that do the same. Functions count that both profiles name, with 5 % or more in
# one. STACKS_SHOW=1 lists them. "width" is the widest of these ranges, in percent: 100 compares nothing.
#
# perf 6.1 unwinds a library at the address at which it saw it first. A second process has it elsewhere, so the
# one that starts the program must have no library in common with it: it is linked statically. A buffer of
# 128 MB has room for 2 s of 874 copies of 64 KB each, most programs' whole run, so that perf loses none while it waits
# for a CPU; its default has room for eight.
#
# "judge" prints verdicts instead of the table, for tests/night/kernel/stacks-perf.sh. Both profilers watch one
# run of each program, since two runs of a server under load differ by more than chance; their rates differ, so
# that they do not fall in step. perf copies 64 KB of each stack, which has no fewer whole stacks than its
# default. The verdicts, and the odds that one fails by chance:
#
#	- The share of whole stacks is not below perf's by more than 4.2 standard deviations of the difference of
#	  two shares: 1 in 75,000 for each program.
#	- No range of a hot function is off perf's by more than 5 standard deviations: 1 in 1.7 million for each
#	  function, of which there are fewer than 20 in a program. None that perf sees is missing in profilctl's.
#	- At least 95 % of all stacks are whole: no chance, nearly all are.
#
# "whole" prints the table of COSTS.md: each program by itself under profilctl record -g, without a wrapper, whose
# exec of the program would come before the rules of that are read, and by reason how many stacks are cut.
import collections
import ctypes
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

BUILD = os.environ.get("BUILD", "build")
SECONDS = float(os.environ.get("STACKS_S", "2"))
HZ = os.environ.get("STACKS_HZ", "199")
PERF_HZ = int(HZ) * 7 // 8  # in "judge"
CTL = os.path.abspath(f"{BUILD}/profilctl")
os.environ["PATH"] = "/usr/bin:/bin:" + os.environ["PATH"]  # Debian's own programs
DEBIANS = ("sqlite3", "xz", "python3", "perl", "openssl", "cc1", "cc1-short", "git", "redis", "node")
JUDGED = ("sqlite3", "xz", "python3", "perl", "openssl", "cc1", "git", "redis")
WHOLE_SIGMAS, SHARE_SIGMAS = 4.2, 5
LEAST = 300  # samples: fewer agree with nearly anything
STARTS = re.compile(r"^(_start|__?clone3?|clone3?|start_thread|__libc_start_main.*|__libc_start_call_main|_dl_start_user|_dl_start)$")

# Runs a command and writes what it took to a file. With STACKS_GATE=READY,GO, two descriptors, the child writes
# its pid to READY and execs at the end of GO.
TIMED = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
static void wait_at(const char *gate)
{
	int ready, go;
	char byte;

	if (sscanf(gate, "%d,%d", &ready, &go) != 2 || dprintf(ready, "%d\n", getpid()) < 0)
		_exit(126);
	while (read(go, &byte, 1) > 0)
		;
	close(ready);
	close(go);
}
int main(int argc, char **argv)
{
	struct rusage u;
	int status = 1;
	pid_t pid = argc > 2 ? fork() : -1;
	FILE *f;

	if (!pid) {
		if (getenv("STACKS_GATE"))
			wait_at(getenv("STACKS_GATE"));
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &u) < 0 || !(f = fopen(argv[1], "w")))
		return 1;
	fprintf(f, "%f\n", u.ru_utime.tv_sec + u.ru_stime.tv_sec + 1e-6 * (u.ru_utime.tv_usec + u.ru_stime.tv_usec));
	fclose(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
"""

RECURSION = r"""
#include <time.h>
#include <stdlib.h>
static volatile unsigned long spun;
__attribute__((noinline)) static void spin(double s)
{
	struct timespec t;
	do {
		for (int i = 0; i < 300000; i++)
			spun += (unsigned int)i;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	} while (t.tv_sec + t.tv_nsec * 1e-9 < s);
}
__attribute__((noinline)) static void recur(int depth, double s)
{
	if (depth > 1)
		recur(depth - 1, s);
	else
		spin(s);
	spun++;
}
int main(int argc, char **argv)
{
	double s = atof(argv[argc - 1]);
	for (int d = 1; d <= 118; d++)
		recur(d, s * d / 118);
	return 0;
}
"""


def make_repository(d, commits):
    """A repository in which each commit changes some lines of a file."""
    random.seed(1)
    lines = [f"line {i} of a text that changes from commit to commit" for i in range(300)]
    stream = []
    for n in range(commits):
        for _ in range(10):
            at = random.randrange(len(lines))
            lines[at] = f"line {at}, changed by commit {n} to {random.random()}"
        text = "\n".join(lines) + "\n"
        stream.append(f"commit refs/heads/main\ncommitter A <a@b> {n} +0000\ndata 1\nx\n"
                      f"M 644 inline text\ndata {len(text)}\n{text}\n")
    subprocess.run(["git", "init", "-q", "-b", "main", f"{d}/repository"], check=True)
    subprocess.run(["git", "-C", f"{d}/repository", "fast-import", "--quiet"], input="".join(stream), text=True, check=True)


def programs(d):
    """Name: the command, the file that must be there, and why some stacks may be cut."""
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True).stdout.strip()
    with open(f"{d}/r.c", "w") as f:
        f.write(RECURSION)
    for name, flag in (("r", "-fomit-frame-pointer"), ("rfp", "-fno-omit-frame-pointer")):
        subprocess.run(["gcc", "-O2", "-fno-optimize-sibling-calls", flag, "-o", f"{d}/{name}", f"{d}/r.c"], check=True)
    with open(f"{d}/timed.c", "w") as f:
        f.write(TIMED)
    subprocess.run(["gcc", "-O2", "-static", "-o", f"{d}/timed", f"{d}/timed.c"], check=True)
    with open(f"{d}/big.c", "w") as f:
        f.write("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n")
        for i in range(int(200 * SECONDS)):
            f.write(f"int f{i}(int *a, int n) {{ int s = 0; for (int i = 0; i < n; i++) {{ s += a[i] * {i};"
                    f" if (s & {i}) s ^= a[(i * 7) % n]; switch (s % 5) {{ case 0: s += 3; break; case 1: s *= a[0]; break;"
                    f" default: s = ~s; }} }} return s + printf(\"%d\", s); }}\n")
    subprocess.run(["gcc", "-E", "-o", f"{d}/big.i", f"{d}/big.c"], check=True)
    sql = (f"with recursive c(x) as (select 1 union all select x+1 from c limit {int(1500000 * SECONDS)})"
           " select count(*), sum(x*x%7) from c group by x%13 order by 2;")
    python = f"import time\ndef f(n):\n return n if n < 2 else f(n-1)+f(n-2)\nwhile time.process_time() < {SECONDS}: f(15)"
    perl = f"sub f {{ my $n = shift; $n < 2 ? $n : f($n-1)+f($n-2) }} while (times < {SECONDS}) {{ f(14) }}"
    js = (f"function f(n){{return n<2?n:f(n-1)+f(n-2)}} while(process.cpuUsage().user < {SECONDS}e6)"
          "{ f(18); JSON.parse(JSON.stringify([1,2,{a:[1,2]}])) }")
    with open("/usr/bin/perl", "rb") as i, open(f"{d}/text", "wb") as o:
        o.write(i.read(int(1500000 * SECONDS)))
    if shutil.which("git"):
        make_repository(d, int(4000 * SECONDS))
    return {
        "recursion": ([f"{d}/r", str(SECONDS)], f"{d}/r"),
        "recursion-fp": ([f"{d}/rfp", str(SECONDS)], f"{d}/rfp"),
        "sqlite3": (["sqlite3", ":memory:", sql], shutil.which("sqlite3")),
        "xz": (["xz", "-T1", "-kc", f"{d}/text"], shutil.which("xz")),
        "python3": (["python3", "-c", python], shutil.which("python3")),
        "perl": (["perl", "-e", perl], shutil.which("perl")),
        "openssl": (["openssl", "speed", "-seconds", str(max(1, int(SECONDS / 4))), "rsa2048", "ecdsap256"], shutil.which("openssl")),
        "cc1": ([cc1, "-quiet", "-O2", f"{d}/big.i", "-o", "/dev/null"], cc1),
        "cc1-short": ([cc1, "-quiet", "-O0", f"{d}/big.i", "-o", "/dev/null"], cc1),
        "git": (["git", "-C", f"{d}/repository", "log", "-p", "--stat"], shutil.which("git")),
        "redis": (["redis-server", "--port", "0", "--unixsocket", f"{d}/redis", "--save", ""],
                  shutil.which("redis-benchmark") and shutil.which("redis-server")),
        "node": (["node", "-e", js], shutil.which("node")),
    }


def cpu(before):
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Profile:
    """Counts of stacks (outermost first) whose process is of the program itself."""

    def __init__(self):
        self.stacks = collections.Counter()
        self.cut = collections.Counter()
        self.whole = self.total = 0

    def add(self, frames, whole, n):
        self.total += n
        self.whole += n if whole else 0
        self.stacks[tuple(frames)] += n
        self.cut[tuple(frames)] += 0 if whole else n

    def inclusive(self):
        """Samples of each function, and those of them whose stacks are cut."""
        c, cut = collections.Counter(), collections.Counter()
        for frames, n in self.stacks.items():
            for f in set(frames):
                c[f] += n
                cut[f] += self.cut[frames]
        return c, cut

    def ranges(self):
        """The least and the greatest share of each function."""
        c, cut = self.inclusive()
        return {f: (n / self.total, (n + self.total - self.whole - cut[f]) / self.total) for f, n in c.items()}


def load_redis(path):
    """Sends requests to the server that is about to start, then has it end."""
    return subprocess.Popen(["timeout", "100", "sh", "-c", f"until redis-cli -s {path} ping; do :; done;"
                             f" redis-benchmark -s {path} -q -n {int(200000 * SECONDS)} -P 16 -t set,lpush,lrange_100;"
                             f" redis-cli -s {path} shutdown nosave"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run(profiler, argv, d):
    """Runs the command under the profiler; returns what the profiler's own processes took, and what they said."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    load = load_redis(f"{d}/redis") if "redis-server" in argv else None
    r = subprocess.run([*profiler, f"{d}/timed", f"{d}/took", *argv], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                       text=True, errors="replace")
    used = cpu(before)
    if load:
        load.wait()
    with open(f"{d}/took") as f:
        return used - float(f.read()), r.stderr


def daemon_cpu(pid):
    used = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as f:
            used += int(f.read().split()[0]) / 1e9
    return used


def start_daemon(d):
    """Starts the daemon that all recordings use, as an installed one."""
    os.environ["PROFIL_SOCKET"] = f"{d}/socket"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(f"{d}/notify")
        notify.settimeout(120)
        daemon = subprocess.Popen([f"{BUILD}/profild", "--socket", f"{d}/socket", "--fast-rate", "1000"], stderr=subprocess.DEVNULL,
                                  env=os.environ | {"NOTIFY_SOCKET": f"{d}/notify"})
        while b"READY=1" not in notify.recv(512):
            pass
    return daemon


def plain(name):
    """A C++ name without return type and parameters, as perf has it."""
    depth = end = start = 0
    for at, c in enumerate(name):
        if c == "(" and depth == 0 and not name.startswith("(anonymous namespace)", at) and not name[:at].endswith("operator"):
            end = at
            break
        if c == " " and depth == 0 and not name[start:at].endswith("operator"):
            start = at + 1
        depth += (c in "<(") - (c in ">)")
    return name[start:end] if end else name


def recorder(out):
    return [CTL, "record", "-q", "-g", "--native", "-F", HZ, "--user-only", "-f", "folded", "-o", out, "--"]


def record(argv, d, daemon):
    out = f"{d}/folded"
    before = daemon_cpu(daemon.pid)
    used, said = run(recorder(out), argv, d)
    return recorded(out, said, used + daemon_cpu(daemon.pid) - before)


# The wrapper's exec of the program is what the rules are read after; perf begins with it.
NOT_YET = "[cut: rules not read yet]"


def folded(out, said):
    """Each stack of the file with its count and the frame that says how it is cut, if it is."""
    if not os.path.exists(out):
        sys.exit(f"profilctl: {said}")
    with open(out) as f:
        for line in f:
            stack, n = line.rsplit(" ", 1)
            frames = stack.split(";")
            cut = frames[1] if len(frames) > 1 and frames[1].startswith("[cut") else frames[-1] if frames[-1].startswith("[no stack") else None
            yield frames, int(n), cut
    os.unlink(out)


def recorded(out, said, used=None, without=None):
    p = Profile()
    p.used = used
    for frames, n, cut in folded(out, said):
        if not without or without not in frames:
            p.add([plain(x) for x in frames[1:] if not x.startswith("[cut")], not cut, n)
    return p


def whole(frames):
    """Says whether perf's stack, the outermost frame last, reaches the start of its thread."""
    return bool(STARTS.match(frames[-1])) or (
        frames[-1] == "[unknown]" and len(frames) > 1 and frames[-2].startswith("__libc_start_main"))


def script(data, *options):
    """What perf script prints, and the CPU time of all its processes. It does not wait for addr2line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = subprocess.run(["perf", "script", *options, "-i", data, "-F", "comm,ip,sym"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, errors="replace").stdout
    orphans = [int(pid) for pid in open(f"/proc/self/task/{os.getpid()}/children").read().split()]
    for pid in orphans:
        with open(f"/proc/{pid}/comm") as f:
            if f.read() in ("addr2line\n", "sh\n"):
                os.waitpid(pid, 0)
    return text, cpu(before)


def perf_record(data, bytes, hz=HZ):
    return ["perf", "record", "-q", "--no-bpf-event", "-e", "cpu-clock:u", "--call-graph", f"dwarf,{bytes}", "-F", str(hz), "-m", "128M",
            "-o", data]


def perf(argv, d, bytes=8192, inlined=True):
    data = f"{d}/perf.data"
    used, _ = run([*perf_record(data, bytes), "--"], argv, d)
    return perf_recorded(data, used, inlined)


def both(argv, d):
    """Runs the command once under both profilers; perf attaches to it before it execs."""
    out, data = f"{d}/folded", f"{d}/perf.data"
    (ready, ready_end), (go_end, go), (control_end, control), (ack, ack_end) = (os.pipe() for _ in range(4))
    load = load_redis(f"{d}/redis") if "redis-server" in argv else None
    ours = subprocess.Popen([*recorder(out), f"{d}/timed", f"{d}/took", *argv], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            text=True, errors="replace", pass_fds=(ready_end, go_end), env=os.environ | {"STACKS_GATE": f"{ready_end},{go_end}"})
    for fd in (ready_end, go_end):
        os.close(fd)
    pid = os.read(ready, 16).decode().strip() or sys.exit(f"profilctl: {ours.communicate()[1]}")
    theirs = subprocess.Popen([*perf_record(data, 65528, PERF_HZ), "-D", "-1", "--control", f"fd:{control_end},{ack_end}", "-p", pid],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, pass_fds=(control_end, ack_end))
    for fd in (control_end, ack_end):
        os.close(fd)
    os.write(control, b"enable\n")
    is_on = os.read(ack, 16)
    os.close(go)
    said, perf_said = ours.communicate()[1], theirs.communicate()[1]
    for fd in (ready, control, ack):
        os.close(fd)
    if load:
        load.wait()
    if not is_on or ours.returncode:
        sys.exit(f"perf: {perf_said}; profilctl, status {ours.returncode}: {said}")
    return recorded(out, said, without=NOT_YET), perf_recorded(data)


def perf_recorded(data, used=0, inlined=False):
    p = Profile()
    p.inlined = used + script(data)[1] if inlined else None
    text, named = script(data, "--no-inline")
    p.used = used + named
    for block in text.split("\n\n"):
        lines = block.strip("\n").split("\n")
        comm = lines[0].strip()
        frames = [re.sub(r"^\s*[0-9a-f]+\s+", "", x) for x in lines[1:] if x.strip()]
        if not frames or comm in ("perf", "perf-exec", "timed"):
            continue
        frames = [re.sub(r"@+[A-Z_0-9.]+$", "", f) for f in frames]
        p.add(frames[::-1], whole(frames), 1)
    p.kib = os.path.getsize(data) // 1024
    os.unlink(data)
    return p


def rules_kib(program, d):
    """What the cache has of a program's file and of the libraries that it is linked with."""
    linked = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    total = 0
    for path in {os.path.realpath(p) for p in [program, *re.findall(r"/\S+", linked)]}:
        notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
        build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)
        for name in (f"{build_id[1]}.rows", f"{build_id[1]}.debug.rows") if build_id else ():
            total += os.path.getsize(f"{d}/profil/{name}") if os.path.exists(f"{d}/profil/{name}") else 0
    return total // 1024


def sigma(x, y, share):
    """The standard deviation of the difference of two shares that are expected to be equal."""
    share = min(max(share, 0.01), 0.99)
    return (share * (1 - share) * (1 / x.total + 1 / y.total)) ** 0.5


def hot(name, *shares):
    return max(shares) >= 0.05 and not (name.startswith("[") or "+0x" in name or STARTS.match(name))


def shares(ours, theirs):
    """For each hot function that both name: by how many standard deviations its ranges are apart, and the ranges."""
    a, b = ours.ranges(), theirs.ranges()
    for f in sorted(set(a) & set(b), key=lambda f: -a[f][0]):
        if hot(f, a[f][0], b[f][0]):
            share = (a[f][0] * ours.total + b[f][0] * theirs.total) / (ours.total + theirs.total)
            yield f, max(a[f][0] - b[f][1], b[f][0] - a[f][1]) / sigma(ours, theirs, share), a[f], b[f]


def percents(one, other):
    return f"{100 * one[0]:6.2f} to {100 * one[1]:6.2f}, perf {100 * other[0]:6.2f} to {100 * other[1]:6.2f}"


def off(ours, theirs):
    """How many functions' shares differ by more than chance, of how many, and the widest range."""
    n = wrong = widest = 0
    for f, sigmas, one, other in shares(ours, theirs):
        n += 1
        wrong += sigmas > 3
        widest = max(widest, one[1] - one[0], other[1] - other[0])
        if os.environ.get("STACKS_SHOW"):
            print(f"    {'off' if sigmas > 3 else '   '} {percents(one, other)} {f}")
    return f"{wrong} of {n}", f"{100 * widest:.1f}"


def exact(p):
    """The share of stacks of the recursion that are a start, main, n of recur, spin and what it calls."""
    good = n = 0
    for frames, count in p.stacks.items():
        if "spin" not in frames:
            continue
        at = frames.index("spin")
        n += count
        calls = [f for f in frames[:at] if f == "recur"]
        good += count if frames[at - len(calls):at] == tuple(calls) and "main" in frames[:at] and len(calls) <= 118 else 0
    return f"{100 * good / n:.2f}" if n else "-"


def share(p):
    return f"{100 * p.whole / p.total:.2f}" if p.total else "-"


def main():
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER, for script()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # through finally
    names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as d:
        os.environ["XDG_CACHE_HOME"] = d
        all_programs = programs(d)
        daemon = start_daemon(d)
        try:
            if names[:1] == ["judge"]:
                judge(all_programs, names[1:] or JUDGED, d, daemon)
            elif names[:1] == ["whole"]:
                whole_table(all_programs, names[1:] or DEBIANS, d)
            else:
                compare(all_programs, names or all_programs, d, daemon)
        finally:
            daemon.terminate()
            daemon.wait()


def verdict(is_ok, name, why):
    print(f"ok {name}" if is_ok else f"FAIL {name}: {why}", flush=True)


def judge_whole(name, ours, theirs):
    short = (theirs.whole / theirs.total - ours.whole / ours.total) / sigma(
        ours, theirs, (ours.whole + theirs.whole) / (ours.total + theirs.total))
    verdict(short <= WHOLE_SIGMAS, f"no fewer stacks of {name} are whole than perf's",
            f"{ours.whole} of {ours.total}, perf {theirs.whole} of {theirs.total}, {short:.1f} deviations fewer")


def judge_shares(name, ours, theirs):
    n, wrong = 0, []
    for f, sigmas, one, other in shares(ours, theirs):
        n += 1
        if sigmas > SHARE_SIGMAS:
            wrong.append(f"{f} {percents(one, other)}, {sigmas:.1f} deviations apart")
    a = ours.ranges()
    wrong += [f"{f} of {100 * share[0]:.2f} % is missing" for f, share in theirs.ranges().items() if f not in a and hot(f, share[0])]
    verdict(n and not wrong, f"the inclusive shares of the hot functions of {name} are perf's", "; ".join(wrong) or "both name none")


def judge(all_programs, names, d, daemon):
    whole = total = 0
    for name in names:
        argv, there = all_programs[name]
        if not there:
            print(f"skip stacks of {name} are perf's: {name} is not installed: sudo make deps", flush=True)
            continue
        record(argv, d, daemon)  # fills the cache
        ours, theirs = both(argv, d)
        if min(ours.total, theirs.total) < LEAST:
            verdict(False, f"stacks of {name} are sampled", f"{ours.total} samples, perf {theirs.total}: too few")
            continue
        judge_whole(name, ours, theirs)
        judge_shares(name, ours, theirs)
        whole += ours.whole
        total += ours.total
    verdict(whole >= 0.95 * total, "of all stacks at least 95 % are whole", f"{whole} of {total}")


def percent(n, total):
    return f"{100 * n / total:.2f} %"


def whole_table(all_programs, names, d):
    """Prints how many stacks of each program are whole, in the table's own form."""
    print("| program | samples | whole | rules not read yet | cut otherwise |\n|---|---|---|---|---|")
    totals = collections.Counter()
    for name in names:
        argv, there = all_programs[name]
        if not there:
            sys.exit(f"{name} is not installed: sudo make deps")
        out, cuts = f"{d}/folded", collections.Counter()
        load = load_redis(f"{d}/redis") if "redis-server" in argv else None
        said = subprocess.run([*recorder(out), *argv], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace").stderr
        if load:
            load.wait()
        for _, n, cut in folded(out, said):
            cuts[cut] += n
        totals += cuts
        whole_row(name, cuts)
    whole_row("all", totals)


def whole_row(name, cuts):
    total = sum(cuts.values())
    others = ", ".join(f"{cut.removeprefix('[cut: ').strip('[]')} {n}" for cut, n in cuts.most_common() if cut not in (None, NOT_YET))
    print(f"| {name} | {total} | {cuts[None]}, {percent(cuts[None], total)} | {cuts[NOT_YET]} | {others or 0} |", flush=True)


def compare(all_programs, names, d, daemon):
    print(f"{'':13} {'profilctl record -g':^67}   {'perf record --call-graph dwarf':^44}")
    print(f"{'program':13} {'samples':>7} {'whole %':>8} {'1st run %':>9} {'exact %':>8} {'CPU s':>7} {'off':>7} {'width':>5} {'rules KiB':>9}"
          f"   {'samples':>7} {'whole %':>8} {'CPU s':>7} {'inlined':>7} {'KiB':>8}")
    all_ours, all_theirs = Profile(), Profile()
    all_ours.used = all_theirs.used = all_theirs.inlined = 0
    for name in names:
        argv, there = all_programs[name]
        if not there:
            print(f"{name:13} is not installed")
            continue
        first = record(argv, d, daemon)
        ours, theirs, all_of_it = record(argv, d, daemon), perf(argv, d), perf(argv, d, 65528, inlined=False)
        for one, total in ((ours, all_ours), (theirs, all_theirs)):
            total.total += one.total
            total.whole += one.whole
            total.used += one.used
        all_theirs.inlined += theirs.inlined
        wrong, width = off(ours, all_of_it)
        print(f"{name:13} {ours.total:7} {share(ours):>8} {share(first):>9} {exact(ours) if name.startswith('rec') else '':>8}"
              f" {ours.used:7.3f} {wrong:>7} {width:>5} {rules_kib(there, d):9}"
              f"   {theirs.total:7} {share(theirs):>8} {theirs.used:7.3f} {theirs.inlined:7.3f} {theirs.kib:8}", flush=True)
    print(f"{'all':13} {all_ours.total:7} {share(all_ours):>8} {'':9} {'':8} {all_ours.used:7.3f} {'':7} {'':5} {'':9}"
          f"   {all_theirs.total:7} {share(all_theirs):>8} {all_theirs.used:7.3f} {all_theirs.inlined:7.3f}")


main()
