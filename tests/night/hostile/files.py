# files.py - readers beside programs whose files take much more memory or time to read than to store
#
# Each file is executed by another user. Whatever is in it, each reader stays below 256 MB, "-d 1" records
# for 1 s, and the file costs no more than 2 s of CPU time.
#
# usage: files.py BUILD DIRECTORY [FILE...]
import lzma
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
from manager import Daemon  # noqa: E402
from outcome import finish, ok, skip  # noqa: E402

ATTACKER = 60001
PEAK_MB = 256
KILL_MB = 1000
RECORD_S = 1
LATE_S = 2
OVER_S = 0.5
INT_S = 1
REPORT_S = 30
RUNS_S = 200
MIB = 1 << 20
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA = 1, 2, 3, 4
SHF_ALLOC, SHF_EXECINSTR = 2, 4
SHF_COMPRESSED = 1 << 11
ZLIB, ZSTD = 1, 2

PROGRAM = """
#include <unistd.h>
int main(void)
{
	alarm(%d);
	for (volatile unsigned long n = 0;; n++)
		;
}
""" % RUNS_S


class Elf:
    """A 64-bit ELF file, with sections added at its end."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.file = bytearray(f.read())
        at, size, n, names = struct.unpack_from("<Q10xHHH", self.file, 40)
        self.sections = [list(struct.unpack_from("<IIQQQQIIQQ", self.file, at + i * size)) for i in range(n)]
        self.names_at = names
        where, length = self.sections[names][4:6]
        self.names = bytearray(self.file[where:where + length])

    def section(self, name):
        for i, s in enumerate(self.sections):
            end = self.names.index(0, s[0])
            if self.names[s[0]:end] == name.encode():
                return i, s
        return None, None

    def add(self, name, data, kind=SHT_PROGBITS, flags=0, link=0, info=0, entry=0):
        """Returns the section's number."""
        self.file += bytes(-len(self.file) % 16)
        self.sections.append([len(self.names), kind, flags, 0, len(self.file), len(data), link, info, 16, entry])
        self.names += name.encode() + b"\0"
        self.file += data
        return len(self.sections) - 1

    def write(self, path):
        self.sections[self.names_at][4:6] = len(self.file), len(self.names)
        self.file += self.names
        self.file += bytes(-len(self.file) % 16)
        struct.pack_into("<Q", self.file, 40, len(self.file))
        struct.pack_into("<H", self.file, 60, len(self.sections))
        for s in self.sections:
            self.file += struct.pack("<IIQQQQIIQQ", *s)
        with open(path, "wb") as f:
            f.write(self.file)
        os.chmod(path, 0o755)


def compressed(data, kind=ZLIB, size=None):
    packed = zlib.compress(data, 9) if kind == ZLIB else subprocess.run(
        ["zstd", "-q", "-c", "-19"], input=data, stdout=subprocess.PIPE, check=True).stdout
    return struct.pack("<IIQQ", kind, 0, len(data) if size is None else size, 1) + packed


def zeros(mib):
    """xz of an ELF header and so many MiB of zeros."""
    c = lzma.LZMACompressor()
    out = [c.compress(b"\x7fELF\2\1\1" + bytes(57))]
    for _ in range(mib):
        out.append(c.compress(bytes(MIB)))
    return b"".join(out) + c.flush()


def zeros_in_zlib(mib):
    c = zlib.compressobj(9)
    out = [struct.pack("<IIQQ", ZLIB, 0, mib * MIB, 1)]
    for _ in range(mib):
        out.append(c.compress(bytes(MIB)))
    return b"".join(out) + c.flush()


# --- DWARF ------------------------------------------------------------------------------------

def uleb(n):
    out = bytearray()
    while True:
        out.append(n & 127 | (128 if n > 127 else 0))
        n >>= 7
        if not n:
            return bytes(out)


ABBREV = b"".join([
    uleb(1), uleb(0x11), b"\1", uleb(0x11), uleb(1), uleb(0x12), uleb(7), uleb(0x10), uleb(0x17), b"\0\0",  # unit
    uleb(2), uleb(0x2e), b"\1", uleb(0x11), uleb(1), uleb(0x12), uleb(7), uleb(3), uleb(8), b"\0\0",  # function
    uleb(3), uleb(0x1d), b"\1", uleb(0x31), uleb(0x13), uleb(0x11), uleb(1), uleb(0x12), uleb(7), b"\0\0",  # inlined
    uleb(4), uleb(0x11), b"\0", b"\0\0",  # an empty unit
    b"\0"])


def unit(dies):
    return struct.pack("<IHIB", 7 + len(dies), 4, 0, 8) + dies


def text_of(elf):
    s = elf.section(".text")[1]
    return s[3], s[5]


def tiny_units(elf):
    low, size = text_of(elf)
    one = unit(struct.pack("<BQQI", 1, low, size, 0) + b"\0")
    empty = unit(uleb(4))
    return one + empty * (60 * MIB // len(empty))


def live_units(elf):
    """Each of them claims to hold the program's code."""
    low, size = text_of(elf)
    one = unit(struct.pack("<BQQI", 1, low, size, 0) + b"\0")
    return one * (60 * MIB // len(one))


def inlined(elf):
    """A function with millions of copies of itself inlined into it."""
    low, size = text_of(elf)
    head = struct.pack("<BQQI", 1, low, size, 0)
    function = struct.pack("<BQQ", 2, low, size) + b"f\0"
    copy = struct.pack("<BIQQ", 3, 11 + len(head), low, size) + b"\0"
    return unit(head + function + copy * (60 * MIB // len(copy)) + b"\0\0")


def line_program(elf, mib):
    """A row for each byte."""
    low, _ = text_of(elf)
    header = struct.pack("<BBBbBB", 1, 1, 1, -5, 14, 13) + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
    header += b"\0" + b"a.c\0\0\0\0" + b"\0"
    program = b"\0\x09\2" + struct.pack("<Q", low) + b"\x20" * (mib * MIB) + b"\0\1\1"
    body = struct.pack("<HI", 4, len(header)) + header + program
    return struct.pack("<I", len(body)) + body


def debug_frame(elf, mib):
    """A row for each function of a byte."""
    low, size = text_of(elf)
    cie = struct.pack("<IIB", 20, 0xFFFFFFFF, 1) + b"\0" + uleb(1) + b"\x78" + uleb(16) + b"\x0c\7\x08\x90\1"
    cie += bytes(24 - len(cie))
    out = [cie]
    for i in range(mib * MIB // 32):
        out.append(struct.pack("<IIQQ", 28, 0, low + i % size, 1) + b"\x0e" + uleb(16 + 8 * (i % 2)) + bytes(6))
    return b"".join(out)


PLAIN = "a plain program"


# --- the files --------------------------------------------------------------------------------

def symbols(elf, n, name):
    """So many symbols in the program's code, each with a name of its own in the same long text."""
    low, size = text_of(elf)
    text = elf.section(".text")[0]
    strings = b"\0" + name + b"\0"
    link = elf.add(".strtab", strings, SHT_STRTAB)
    # The symbols' names are the ends of one text.
    table = bytearray(24)
    chunk = bytearray()
    for i in range(65536):
        chunk += struct.pack("<IBBHQQ", 1 + i % len(name), 0x12, 0, text, low + i % size, 1)
    table += chunk * (n // 65536)
    elf.add(".symtab", bytes(table), SHT_SYMTAB, link=link, info=1, entry=24)


def stubs(elf, n, name_bytes):
    """So many stubs of a PLT, which all call one function with a long name."""
    slot = 1 << 24
    strings = elf.add(".names", b"\0" + b"a" * name_bytes + b"\0", SHT_STRTAB)
    named = elf.add(".named", bytes(24) + struct.pack("<IBBHQQ", 1, 0x11, 0, 1, 0, 1), SHT_SYMTAB, link=strings, info=1, entry=24)
    elf.add(".rela.plt", struct.pack("<QQq", slot, 1 << 32 | 7, 0), SHT_RELA, SHF_ALLOC, link=named, entry=24)
    code = b"".join(b"\xff\x25" + struct.pack("<i", slot - 6 * (i + 1)) for i in range(n))
    elf.add(".plt", code, flags=SHF_ALLOC | SHF_EXECINSTR)


def with_dwarf(elf, info, line=b"", pack=ZLIB):
    for name, data in ((".debug_abbrev", ABBREV), (".debug_info", info), (".debug_line", line)):
        if data:
            elf.add(name, compressed(data, pack) if pack else data, flags=SHF_COMPRESSED if pack else 0)


def one_unit(elf):
    low, size = text_of(elf)
    return unit(struct.pack("<BQQI", 1, low, size, 0) + b"\0")


BOMBS = {
    PLAIN: lambda e: None,
    "mini debug information of 2 GiB": lambda e: e.add(".gnu_debugdata", zeros(2048)),
    "mini debug information of 60 MiB": lambda e: e.add(".gnu_debugdata", zeros(60)),
    "DWARF of 2 GiB by zlib": lambda e: [
        e.add(n, zeros_in_zlib(1024), flags=SHF_COMPRESSED) for n in (".debug_info", ".debug_frame")],
    "DWARF whose header lies": lambda e: [
        e.add(n, compressed(bytes(256 * MIB), size=4096), flags=SHF_COMPRESSED)
        for n in (".debug_info", ".debug_frame")],
    "DWARF of 1 GiB by GNU's zlib": lambda e: e.add(
        ".zdebug_info", b"ZLIB" + struct.pack(">Q", 1 << 30) + zeros_in_zlib(1024)[24:]),
    "DWARF of 1 GiB by zstd": lambda e: e.add(
        ".debug_info", compressed(bytes(1 << 30), ZSTD), flags=SHF_COMPRESSED),
    "60 MiB of empty units": lambda e: with_dwarf(e, tiny_units(e)),
    "60 MiB of units with code": lambda e: with_dwarf(e, live_units(e)),
    "60 MiB of inlined functions": lambda e: with_dwarf(e, inlined(e)),
    "60 million rows of lines": lambda e: with_dwarf(e, one_unit(e), line_program(e, 60)),
    "60 MiB of unwind rules": lambda e: e.add(".debug_frame", debug_frame(e, 60)),
    "8 million symbols": lambda e: symbols(e, 8 << 20, b"abcdefgh" * 32),
    "1 million symbols of 8 kB": lambda e: symbols(e, 1 << 20, b"a" * 70000),
    "500,000 symbols of 35 kB": lambda e: symbols(e, 500000, b"a" * 70000),
    "10,000 stubs with names of 1 MiB": lambda e: stubs(e, 10000, MIB),
    "1 million mangled symbols": lambda e: symbols(
        e, 1 << 20, b"_Z1f" + b"St4pairI" * 100 + b"ii" + b"E" * 100),
}


def build_program(directory):
    path = f"{directory}/plain"
    with open(path + ".c", "w") as f:
        f.write(PROGRAM)
    subprocess.run(["cc", "-O1", "-s", "-o", path, path + ".c"], check=True)
    return path


# --- the readers ------------------------------------------------------------------------------

class Run:
    """Seconds, those of CPU time, peak of memory in MB and status of a command.

    It is killed beyond KILL_MB, and after @limit_s."""

    def __init__(self, command, env, interrupt_s=None, limit_s=60):
        began = time.monotonic()
        self.peak, ended = 0, 0
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=said)
            while not ended:
                self.peak = max(self.peak, peak_of(process.pid))
                now = time.monotonic()
                if interrupt_s is not None and now - began > interrupt_s:
                    interrupt_s, began = None, now
                    process.send_signal(signal.SIGINT)
                if self.peak > KILL_MB or now - began > limit_s:
                    process.kill()
                time.sleep(0.01)
                ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            self.took, self.cpu = time.monotonic() - began, usage.ru_utime + usage.ru_stime
            self.status = process.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            self.said = said.read().decode(errors="replace")

    plain = {}

    def control(self, fact):
        """What the reader used beside a plain program."""
        name, _, reader = fact.partition(": ")
        if name == PLAIN:
            self.plain[reader] = self.cpu
        return self.plain.get(reader, 0)

    def judge(self, fact, limit_s, status=(0,)):
        """Of CPU time, which is what another user's file can take: the machine may be busy with something else."""
        limit_s += self.control(fact)
        ok(f"{fact}: {limit_s:.1f} s of CPU time and {PEAK_MB} MB at most "
           f"({self.cpu:.2f} s in {self.took:.2f} s, {self.peak:.0f} MB)",
           self.cpu <= limit_s and self.peak <= PEAK_MB and self.status in status,
           f"{self.cpu:.2f} s in {self.took:.2f} s, {self.peak:.0f} MB, status {self.status}: {self.said[-300:]}")


def peak_of(pid):
    """In MB; 0 where the process has ended. The maximum that wait4() reports has this process's own in it."""
    with open(f"/proc/{pid}/status") as f:
        found = re.search(r"^VmHWM:\s*(\d+)", f.read(), re.M)
    return int(found.group(1)) / 1000 if found else 0


def listens(path):
    with socket.socket(socket.AF_UNIX) as s:
        return not s.connect_ex(path)


def get(path, what):
    began = time.monotonic()
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(path)
        s.sendall(f"GET {what} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        text = b""
        while more := s.recv(1 << 16):
            text += more
    return time.monotonic() - began, text


def http(build, directory, env, name):
    path = f"{directory}/http"
    server = subprocess.Popen([f"{build}/profil-http", "--listen", path], env=env, stderr=subprocess.DEVNULL)
    try:
        while not listens(path) and server.poll() is None:
            time.sleep(0.05)
        try:
            took, text = get(path, "/debug/pprof/profile?seconds=1")
            got = text.split(b"\r\n", 1)[0]
        except OSError as e:
            took, got = 0, str(e).encode()
        peak = peak_of(server.pid) if server.poll() is None else 0
        ok(f"{name}: profil-http answers in {REPORT_S} s and {PEAK_MB} MB ({took:.2f} s, {peak:.0f} MB)",
           server.poll() is None and b" 200 " in got and peak <= PEAK_MB and took <= REPORT_S,
           f"{took:.2f} s, {peak:.0f} MB, {got}")
    finally:
        server.kill()
        server.wait()
        if os.path.exists(path):
            os.unlink(path)


def spool(build, directory, env, name):
    folder = f"{directory}/spool"
    os.mkdir(folder)
    p = subprocess.Popen([f"{build}/profilctl", "machine", "spool", "-i", "1", folder], env=env,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + REPORT_S
    while time.monotonic() < until and p.poll() is None and len(
            [f for f in os.listdir(folder) if f.startswith("machine-")]) < 2:
        time.sleep(0.2)
    peak = peak_of(p.pid) if p.poll() is None else 0
    n = len(os.listdir(folder))
    ok(f"{name}: the spool writes within {PEAK_MB} MB ({peak:.0f} MB)", p.poll() is None and peak <= PEAK_MB and n >= 2,
       f"{peak:.0f} MB, {n} files, status {p.poll()}")
    p.kill()
    p.wait()
    shutil.rmtree(folder)


def readers(build, directory, env, name):
    ctl = f"{build}/profilctl"
    for flags in ([], ["-g"]):
        what, out = " ".join(["record -a"] + flags), f"{directory}/profile"
        if name == PLAIN:  # fills the cache of unwind tables
            Run([ctl, "record", "-a", *flags, "-d", str(RECORD_S), "-o", out], env)
        run = Run([ctl, "record", "-a", *flags, "-d", str(RECORD_S), "-o", out], env)
        run.judge(f"{name}: {what} -d {RECORD_S}", LATE_S)
        spans = re.findall(r"samples of ([0-9.]+) s", run.said)
        ok(f"{name}: {what} records for {RECORD_S} s", spans and float(spans[0]) < RECORD_S + OVER_S, run.said[-300:])
        Run([ctl, "record", "-a", *flags, "-o", out + "2"], env, interrupt_s=1.5).judge(
            f"{name}: {what} by SIGINT", INT_S, (0, 130))
    Run([ctl, "top", "-a"], env, interrupt_s=1.5).judge(f"{name}: top -a by SIGINT", INT_S, (0, 130))
    for by in ("line", "inlined"):
        Run([ctl, "report", "--by", by, out], env).judge(f"{name}: report --by {by}", REPORT_S)
    http(build, directory, env, name)
    spool(build, directory, env, name)


def main():
    build, directory = os.path.abspath(sys.argv[1]), sys.argv[2]
    plain = build_program(directory)
    daemon = Daemon(build, directory, args=["--machine"])
    try:
        daemon.start()
        env = dict(os.environ, PROFIL_SOCKET=daemon.socket, XDG_CACHE_HOME=f"{directory}/cache")
        env.pop("DEBUGINFOD_URLS", None)
        for name, make in BOMBS.items():
            if sys.argv[3:] and not any(w in name for w in sys.argv[3:]):
                continue
            if "zstd" in name and not shutil.which("zstd"):
                skip(name, "no zstd: sudo make deps")
                continue
            elf, path = Elf(plain), f"{directory}/bomb"
            make(elf)
            elf.write(path)
            os.chown(path, ATTACKER, ATTACKER)
            print(f"  {name}: {os.path.getsize(path)} bytes")
            p = subprocess.Popen([path], user=ATTACKER, group=ATTACKER, extra_groups=[])
            try:
                readers(build, directory, env, name)
            finally:
                p.kill()
                p.wait()
                os.unlink(path)
    finally:
        daemon.close()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
