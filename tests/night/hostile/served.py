# served.py - root's readers beside a program on a file system whose server falls silent
#
# Each of them must end on time and by SIGINT, and name the other functions, though no signal ends
# a process that waits for the server: the helper process that opens files is left alone.
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
from outcome import finish, ok, skip  # noqa: E402

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


def readers(build, directory, env, name):
    ctl = f"{build}/profilctl"
    for flags in ([], ["-g"]):
        what = " ".join(["record -a"] + flags)
        out = f"{directory}/p{len(flags)}"
        took, status, said = run(
            [ctl, "record", "-a", *flags, "-d", str(RECORD_S), "-o", out], env)
        ok(f"{name}: {what} -d {RECORD_S} ends on time",
           took is not None and took < RECORD_S + LATE_S and status == 0, f"{took} s, status {status}: {said}")
        took, status, said = run([ctl, "record", "-a", *flags, "-o", out], env, interrupt_s=1)
        ok(f"{name}: {what} ends by SIGINT", took is not None and took < INT_S, f"{took} s: {said}")
        took, status, said = run([ctl, "report", out], env)
        ok(f"{name}: report of {what} ends", took is not None and took < LATE_S, f"{took} s: {said}")
    took, status, said = run([ctl, "top", "-a"], env, interrupt_s=1)
    ok(f"{name}: top -a ends by SIGINT", took is not None and took < INT_S and status == 0,
       f"{took} s, status {status}: {said[-500:]}")


def get(port, path):
    began = time.monotonic()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=ANSWER_S) as r:
        r.read()
    return time.monotonic() - began


def http(build, env, name):
    server = subprocess.Popen([f"{build}/profil-http", "--listen", "127.0.0.1:7171"], env=env,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        for path in ("/debug/pprof/profile?seconds=1", "/metrics"):
            try:
                took = get(7171, path)
                ok(f"{name}: profil-http answers {path}", took < 1 + LATE_S, f"{took} s")
            except OSError as e:
                ok(f"{name}: profil-http answers {path}", False, e)
    finally:
        server.terminate()
        try:
            server.wait(INT_S)
            ok(f"{name}: profil-http ends by SIGTERM", True)
        except subprocess.TimeoutExpired:
            server.kill()
            ok(f"{name}: profil-http ends by SIGTERM", False, "still there")


def main():
    build, directory = sys.argv[1:3]
    for below in ("overlay", "plain"):
        for at in ("open", "read", "flush"):
            name = f"{below}, mute at {at}"
            os.mkdir(f"{directory}/{below}-{at}", 0o755)
            daemon = Daemon(build, f"{directory}/{below}-{at}", args=["--machine"])
            served = Served(build, below, at)
            if served.skipped():
                skip(name, served.skipped())
            else:
                try:
                    daemon.start()
                    env = dict(os.environ, PROFIL_SOCKET=daemon.socket)
                    readers(build, daemon.dir, env, name)
                    http(build, env, name)
                finally:
                    daemon.close()
            served.end()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
