# served.py - root's readers beside a program on a file system whose server falls silent
#
# Each of them must end on time and by SIGINT, and name the other functions, though no signal ends
# a process that waits for the server: the helper process that opens files is left alone.
#
# A reader is late when it was late three times, and the control, the same reader beside a server that answers,
# takes less than half of the limit. Else the machine is too slow for a verdict.
#
# usage: served.py BUILD DIRECTORY
import os
import signal
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
from manager import Daemon  # noqa: E402
from outcome import finish, no_verdict, ok, skip  # noqa: E402

RECORD_S = 1
LATE_S = 2.5  # beyond the recording's time: start, symbols, and 0.6 s of waiting in vain
INT_S = 2
ANSWER_S = 15


class Served:
    """The hostile program, until its standard input is closed."""

    def __init__(self, build, *args):
        self.process = subprocess.Popen(
            [f"{build}/tests/night/hostile/served", *args],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0)
        self.said = []
        for line in self.process.stdout:
            self.said.append(line.strip())
            if line.strip() == "under way":
                break

    def skipped(self):
        return next((x[5:] for x in self.said if x.startswith("skip ")), None)

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def run(command, env, interrupt_s=None, limit_s=20):
    """Seconds, status and output; None where it did not end."""
    began = time.monotonic()
    process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if interrupt_s is not None:
        time.sleep(interrupt_s)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
    try:
        said = process.communicate(timeout=limit_s)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return None, None, "it did not end"
    return time.monotonic() - began, process.returncode, said


class Timed:
    """Judges readers by the seconds that they took beside the control."""

    def __init__(self, control=None):
        self.control, self.took = control, {}

    def judge(self, name, what, limit_s, measure):
        """measure() returns seconds, whether the reader did what it must, and its output."""
        for _ in range(3):
            took, right, said = measure()
            self.took[what] = took
            if took is None or not right or took < limit_s:
                break
        control_s = self.control.took.get(what) if self.control else None
        if took is None or not right or took < limit_s:
            ok(f"{name}: {what}", took is not None and right, f"{took} s: {said[-500:]}")
        elif control_s is None or control_s > limit_s / 2:
            no_verdict(f"{name}: {what}", f"{took} s, the control {control_s} s")
        else:
            ok(f"{name}: {what}", False, f"{took} s, the control {control_s} s: {said[-500:]}")


def readers(build, directory, env, name, timed):
    ctl = f"{build}/profilctl"

    def command(args, interrupt_s=None):
        took, status, said = run([ctl, *args], env, interrupt_s=interrupt_s)
        return took, status == 0, said

    for flags in ([], ["-g"]):
        what = " ".join(["record -a"] + flags)
        out = f"{directory}/p{len(flags)}"
        record = ["record", "-a", *flags, "-o", out]
        timed.judge(name, f"{what} -d {RECORD_S} ends on time", RECORD_S + LATE_S,
                    lambda: command(record + ["-d", str(RECORD_S)]))
        timed.judge(name, f"{what} ends by SIGINT", INT_S, lambda: command(record, interrupt_s=1))
        timed.judge(name, f"report of {what} ends", LATE_S, lambda: command(["report", out]))
    timed.judge(name, "top -a ends by SIGINT", INT_S, lambda: command(["top", "-a"], interrupt_s=1))


def get(port, path):
    began = time.monotonic()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=ANSWER_S) as r:
            r.read()
    except OSError as e:
        return None, False, str(e)
    return time.monotonic() - began, True, ""


def http(build, env, name, timed):
    server = subprocess.Popen([f"{build}/profil-http", "--listen", "127.0.0.1:7171"], env=env,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end():
        began = time.monotonic()
        server.terminate()
        try:
            server.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            server.kill()
            return None, False, "still there"
        return time.monotonic() - began, True, ""

    time.sleep(1)
    for path in ("/debug/pprof/profile?seconds=1", "/metrics"):
        timed.judge(name, f"profil-http answers {path}", 1 + LATE_S, lambda path=path: get(7171, path))
    timed.judge(name, "profil-http ends by SIGTERM", INT_S, end)


def beside(build, directory, below, at, control=None):
    """Returns the times of all readers beside a file system that falls mute @at; None: it cannot be had."""
    name = f"{below}, mute at {at}"
    os.mkdir(f"{directory}/{below}-{at}", 0o755)
    daemon = Daemon(build, f"{directory}/{below}-{at}", args=["--machine"])
    served, timed = Served(build, below, at), Timed(control)
    try:
        if served.skipped():
            skip(name, served.skipped())
            return None
        daemon.start()
        env = dict(os.environ, PROFIL_SOCKET=daemon.socket)
        readers(build, daemon.dir, env, name, timed)
        http(build, env, name, timed)
    finally:
        daemon.close()
        served.end()
    return timed


def main():
    build, directory = sys.argv[1:3]
    for below in ("overlay", "plain"):
        control = beside(build, directory, below, "never")
        for at in ("open", "read", "flush") if control else ():
            beside(build, directory, below, at, control)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
