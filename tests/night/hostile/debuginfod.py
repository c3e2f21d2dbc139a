# debuginfod.py - hostile servers of debug files: endless, slow, and one whose file unpacks to gigabytes
#
# usage: debuginfod.py BUILD DIRECTORY
import http.server
import os
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
from files import PEAK_MB, PROGRAM, Elf, Run, compressed, MIB, SHF_COMPRESSED  # noqa: E402
from outcome import finish, ok, skip  # noqa: E402

ATTACKER = 60001
DOWNLOADS_S = 60  # DEBUGINFOD_TIME_S
LATE_S = 15
CACHE_MB = 64
LIMIT_S = 120


class Hostile(http.server.BaseHTTPRequestHandler):
    """Sends what the class says, in pieces."""

    announced, piece, pause_s, body = 0, b"", 0, b""

    def log_message(self, *_):
        pass

    def do_GET(self):
        try:
            self.send_response(200)
            self.send_header("Content-Length", str(len(self.body) or self.announced))
            self.end_headers()
            self.wfile.write(self.body)
            while not self.body:
                self.wfile.write(self.piece)
                self.wfile.flush()
                time.sleep(self.pause_s)
        except OSError:
            pass


def server(**how):
    s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("H", (Hostile,), how))
    s.daemon_threads = True
    threading.Thread(target=s.serve_forever, daemon=True).start()
    return s


def size_of(directory):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(directory) for f in files) / 1e6


def annotate(build, directory, name, profile, limit_s, **how):
    s = server(**how)
    cache = f"{directory}/cache-{name.replace(' ', '-')}"
    env = dict(os.environ, DEBUGINFOD_URLS=f"http://127.0.0.1:{s.server_port}", DEBUGINFOD_CACHE_PATH=cache,
               http_proxy="", DEBUGINFOD_TIMEOUT=str(LIMIT_S))
    run = Run([f"{build}/profilctl", "annotate", "main", profile], env, limit_s=LIMIT_S)
    kept = size_of(cache)
    s.shutdown()
    ok(f"annotate ends beside a server with {name}: {run.took:.1f} s, {run.peak:.0f} MB, {kept:.0f} MB kept",
       run.status == 0 and run.took < limit_s and run.peak < PEAK_MB and kept < CACHE_MB,
       f"status {run.status}, {run.took:.1f} s, {run.peak:.0f} MB, {kept:.0f} MB: {run.said[-300:]}")


def bomb(directory, program):
    """A debug file of the program that unpacks to a gigabyte."""
    path = f"{directory}/bomb.debug"
    subprocess.run(["objcopy", "--only-keep-debug", program, path], check=True)
    elf = Elf(path)
    elf.add(".debug_info", compressed(bytes(1024 * MIB)), flags=SHF_COMPRESSED)
    elf.write(path)
    with open(path, "rb") as f:
        return f.read()


def main():
    build, directory = os.path.abspath(sys.argv[1]), sys.argv[2]
    if "libdebuginfod.so.1" not in subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout:
        skip("annotate ends beside hostile servers", "no libdebuginfod.so.1: sudo make deps")
        return finish()
    program, profile = f"{directory}/program", f"{directory}/profile"
    with open(program + ".c", "w") as f:
        f.write(re.sub(r"alarm.*;", "alarm(2);", PROGRAM))
    subprocess.run(["cc", "-O1", "-Wl,--build-id", "-o", program, program + ".c"], check=True)
    os.chown(program, ATTACKER, ATTACKER)
    subprocess.run([f"{build}/profilctl", "record", "-q", "-d", "1", "-o", profile, "--", program],
                   stderr=subprocess.DEVNULL)
    annotate(build, directory, "a file of a terabyte", profile, LATE_S, announced=1 << 40, piece=bytes(MIB))
    annotate(build, directory, "a byte a second", profile, DOWNLOADS_S + LATE_S, announced=1 << 20, piece=b"a",
             pause_s=1)
    annotate(build, directory, "a file that unpacks to a gigabyte", profile, LATE_S, body=bomb(directory, program))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
