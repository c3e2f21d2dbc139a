# liar.py - clients of a daemon that lies: another user's, at the path that PROFIL_SOCKET names
#
# Whatever it answers, libprofil and profilctl, as root, end by themselves, on time, without a signal
# and without a descriptor left open.
#
# usage: liar.py BUILD DIRECTORY
import array
import mmap
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
from outcome import finish, ok  # noqa: E402

MAGIC, VERSION = 0x6C667270, 3
HELLO, REPLY, LIST, STATUS = 1, 2, 48, 49
LIMIT_S = 120  # libprofil waits for an answer 10 s, profilctl 30 s, some of them for several
ROUNDS = 40
SEED = int(os.environ.get("PROFIL_TEST_SEED", "1"))


def message(kind, body=b"", count=0, magic=MAGIC, version=VERSION, size=None):
    return struct.pack("<IHHII", magic, version, kind, 16 + len(body) if size is None else size, count) + body


def hello():
    return message(HELLO, os.urandom(16) + bytes(8))


def reply(error=0, tick=10000000, total=0):
    return message(REPLY, struct.pack("<IIQQQQQ", error, 0, tick, total, 0, 0, 0))


def memfd(text=b"", size=0):
    fd = os.memfd_create("table")
    os.write(fd, text)
    os.ftruncate(fd, max(size, len(text)))
    return fd


def pipe_end():
    r, w = os.pipe()
    os.close(w)
    return r


class Lie:
    """What it says to each request: a list of (bytes, descriptors), None to hang up, () for silence."""

    def __init__(self, name, first, answer):
        self.name, self.first, self.answer = name, first, answer


def lies(rng):
    good = (hello(), [])
    yield Lie("hangs up", None, None)
    yield Lie("says nothing", (), ())
    yield Lie("greets and hangs up", good, None)
    yield Lie("greets and says nothing more", good, ())
    yield Lie("a greeting of another version", (message(HELLO, bytes(24), version=9), []), None)
    yield Lie("a greeting that is too short", (message(HELLO, bytes(3)), []), None)
    yield Lie("a greeting with a wrong length", (message(HELLO, bytes(24), size=1 << 31), []), None)
    yield Lie("a refusal with an error that is none", (reply(0xFFFFFFFF), []), None)
    for error in (0, 0xFFFFFFFF, 0x80000000, 4096, 11, 1):
        yield Lie(f"error {error:#x}", good, (reply(error), []))
    yield Lie("a clock of 2^64 ns", good, (reply(0, (1 << 64) - 1, (1 << 64) - 1), []))
    yield Lie("253 descriptors", good, (reply(), [os.dup(0) for _ in range(253)]))
    yield Lie("an empty file as table", good, (reply(), [memfd()]))
    yield Lie("zeros as table", good, (reply(), [memfd(size=1 << 20), memfd(size=1 << 20)]))
    yield Lie("a pipe as table", good, (reply(), [pipe_end()]))
    yield Lie("a file that changes as table", good, (reply(), [memfd(os.urandom(1 << 16), 1 << 24)]))
    yield Lie("65535 users", good, (message(STATUS, bytes(48), count=65535), []))
    yield Lie("2^32 - 1 profiles", good, (message(LIST, bytes(64), count=(1 << 32) - 1), []))
    for i in range(ROUNDS):
        said = bytearray(rng.choice([reply(), message(STATUS, bytes(48 + 264)), message(LIST, bytes(64), 1)]))
        for _ in range(rng.randrange(1, 8)):
            said[rng.randrange(len(said))] = rng.randrange(256)
        said = bytes(said[: rng.randrange(1, len(said) + 1)])
        yield Lie(f"random answer {i}", good, (said, []))


class Liar:
    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        os.chmod(path, 0o666)
        self.listener.listen(64)
        self.lie = None
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            sock, _ = self.listener.accept()
            threading.Thread(target=self.talk, args=(sock, self.lie), daemon=True).start()

    @staticmethod
    def say(sock, what):
        said, fds = what
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        sock.sendmsg([said], control)

    def talk(self, sock, lie):
        with sock:
            try:
                if lie.first is None:
                    return
                if lie.first:
                    self.say(sock, lie.first)
                while sock.recv(1 << 16):
                    if lie.answer is None:
                        return
                    if lie.answer:
                        self.say(sock, lie.answer)
            except OSError:
                pass


def ends(command, env):
    began = time.monotonic()
    try:
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"{' '.join(command[1:])} does not end"
    if done.returncode < 0 or "Sanitizer" in done.stderr or done.returncode >= 128:
        return f"{' '.join(command[1:])}: status {done.returncode}: {done.stderr[-500:]}"
    return None if time.monotonic() - began < LIMIT_S else "too late"


def main():
    build, directory = sys.argv[1:3]
    liar = Liar(f"{directory}/liar")
    env = dict(os.environ, PROFIL_SOCKET=f"{directory}/liar")
    ctl = f"{build}/profilctl"
    commands = [
        [f"{build}/tests/night/hostile/victim", "starts", "0.2"],
        [ctl, "status"],
        [ctl, "list"],
        [ctl, "doctor"],
        [ctl, "machine"],
        [ctl, "top", "-a", "-d", "1"],
        [ctl, "record", "-a", "-g", "-d", "1", "-o", f"{directory}/out"],
        [ctl, "attach", str(os.getpid()), "-d", "1"],
        [ctl, "record", "--", "true"],
    ]
    for lie in lies(random.Random(SEED)):
        liar.lie = lie
        quick = lie.first == () or lie.answer == ()
        running = []
        for command in commands[:3] if quick else commands:
            bad = []
            t = threading.Thread(target=lambda c=command, b=bad: b.append(ends(c, env)))
            t.start()
            running.append((t, bad))
            if len(running) >= 2:
                running[-2][0].join()
        for t, _ in running:
            t.join()
        wrong = [b[0] for _, b in running if b[0]]
        ok(f"clients of a daemon that {lie.name if ' ' in lie.name and lie.name[0] in 'hsg' else 'sends ' + lie.name} end",
           not wrong, "; ".join(wrong))
        for what in (lie.first, lie.answer):
            for fd in what[1] if what else []:
                os.close(fd)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
