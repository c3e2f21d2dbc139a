# http_readers.py - hostile readers of profil-http, and names that processes choose, in /metrics
#
# usage: http_readers.py BUILD DIRECTORY
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
from outcome import finish, ok  # noqa: E402

ATTACKER = 60001
ANSWER_S = 3  # for root, beside the attack
SLOW_S = 4


def dial(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(20)
    s.connect(path)
    return s


def get(path, what="/metrics"):
    """The seconds that an answer takes, and the answer; None: there is none."""
    began = time.monotonic()
    try:
        with dial(path) as s:
            s.sendall(f"GET {what} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
            text = b""
            while more := s.recv(1 << 16):
                text += more
    except OSError as e:
        return None, str(e).encode()
    return time.monotonic() - began, text


def answers(fact, path):
    took, text = get(path)
    ok(fact, took is not None and took < ANSWER_S and text.startswith(b"HTTP/1.1 200"), f"{took} s: {text[:200]}")


class Attacker:
    """Runs @code as another user, with @argument, until it prints "begun"; forked, as that user may not
    execute every Python."""

    def __init__(self, code, argument):
        r, w = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(r)
            os.dup2(w, 1)
            sys.stdout = os.fdopen(1, "w")
            os.setgroups([])
            os.setresgid(ATTACKER, ATTACKER, ATTACKER)
            os.setresuid(ATTACKER, ATTACKER, ATTACKER)
            sys.argv[1:] = [argument]
            try:
                exec(code, {"__name__": "attack"})
            finally:
                os._exit(0)
        os.close(w)
        with os.fdopen(r) as begun:
            begun.readline()

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


SLOW_LORIS = """
import socket, sys, time
socks = []
for i in range(600):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(2)
    try:
        s.connect(sys.argv[1]); s.send(b"GET /metrics HTTP/1.1\\r\\nX: ")
    except OSError:
        break
    socks.append(s)
print("begun", flush=True)
while True:
    for s in socks:
        try: s.send(b"a")
        except OSError: pass
    time.sleep(0.2)
"""

SLOW_READERS = """
import socket, sys, time
socks = []
for i in range(600):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(2)
    try:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        s.connect(sys.argv[1]); s.send(b"GET /debug/pprof/ HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n" * 50)
    except OSError:
        break
    socks.append(s)
print("begun", flush=True)
time.sleep(1000)
"""

TRICKS = [
    ("no request", b"\r\n" * 100),
    ("no method", b" / HTTP/1.1\r\n\r\n"),
    ("a header of 1 MiB", b"GET / HTTP/1.1\r\nX: " + b"a" * (1 << 20) + b"\r\n\r\n"),
    ("100,000 headers", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 100000 + b"\r\n"),
    ("an address of 1 MiB", b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\n\r\n"),
    ("a negative length", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"),
    ("a length of 2^64", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n"),
    ("two lengths", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
    ("length and chunks", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("a chunk of 2^64", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\na\r\n"),
    ("a folded header", b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n"),
    ("NUL bytes", b"GET /\0metrics HTTP/1.1\r\nHost: a\0b\r\n\r\n"),
    ("1000 requests at once", b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n" * 1000),
    ("seconds of 2^64", b"GET /debug/pprof/profile?seconds=18446744073709551617 HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("many arguments", b"GET /debug/pprof/profile?" + b"seconds=1&" * 500 + b" HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("escapes", b"GET /%2e%2e/%2e%2e/etc/passwd%00?%zz HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("random bytes", os.urandom(1 << 16)),
]

NAMES = ['a"b', "a\nb", "a\\", "a{b=\"c\"}", "\x1b[31m", "# HELP x", "\u202e"]
LINE = re.compile(rb'^(#( (HELP|TYPE|UNIT|EOF)( .*)?)?|[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-zA-Z_]\w*="([^"\\\n]|\\["\\n])*",?)*\})? '
                  rb"[-+0-9.eEInfNa]+( \d+)?)$")

SPIN = """
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(15, os.fsencode(sys.argv[1]), 0, 0, 0)
print("begun", flush=True)
end = time.time() + 60
while time.time() < end: pass
"""


def names(path):
    spinning = [Attacker(SPIN, name) for name in NAMES]
    time.sleep(3)
    took, text = get(path)
    for p in spinning:
        p.end()
    head, _, body = text.partition(b"\r\n\r\n")
    if b"chunked" in head.lower():
        body = b"".join(re.findall(rb"(?:^|\r\n)[0-9a-fA-F]+\r\n(.*?)(?=\r\n[0-9a-fA-F]+\r\n)", body, re.S))
    wrong = [x for x in body.split(b"\n") if x and not LINE.match(x)]
    ok("names of commands are escaped in /metrics", took is not None and body and not wrong, wrong[:3])
    ok("no control character of a name is in /metrics", b"\x1b" not in body and b"\r" not in body)


def main():
    build, directory = sys.argv[1:3]
    env = dict(os.environ, PROFIL_SOCKET=f"{directory}/sock")
    path = f"{directory}/http"
    daemon = subprocess.Popen([f"{build}/profild", "--machine", "--ephemeral", "--socket", f"{directory}/sock"],
                              env=env)
    while not os.path.exists(f"{directory}/sock"):
        time.sleep(0.1)
    server = subprocess.Popen([f"{build}/profil-http", "--listen", path], env=env)
    try:
        while not os.path.exists(path):
            time.sleep(0.1)
        os.chmod(path, 0o666)
        for _ in range(50):
            if get(path)[1].startswith(b"HTTP/1.1 200"):
                break
            time.sleep(0.2)
        for fact, code in (("requests of a byte each 0.2 s", SLOW_LORIS), ("readers that read nothing", SLOW_READERS)):
            attack = Attacker(code, path)
            time.sleep(SLOW_S)
            answers(f"root is answered beside 600 {fact}", path)
            attack.end()
        for name, text in TRICKS:
            try:
                with dial(path) as s:
                    s.settimeout(0.5)
                    s.sendall(text)
                    s.recv(1 << 16)
            except OSError:
                pass
            ok(f"profil-http survives {name}", server.poll() is None, f"status {server.poll()}")
        answers("root is answered afterwards", path)
        names(path)
        server.terminate()
        ok("profil-http ends well", server.wait(10) == 0, f"status {server.returncode}")
    finally:
        for p in (server, daemon):
            if p.poll() is None:
                p.terminate()
            p.wait(10)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
