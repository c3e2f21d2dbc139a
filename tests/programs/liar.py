# liar.py - a command of "profilctl run" that hands over invalid shared memory
import array
import fcntl
import os
import select
import signal
import socket
import struct
import sys

word = os.environ["PROFIL_RUN"]
magic, version, graph, bytes_ = 0x6C667270, 3, 65, 32
how = sys.argv[1]


def graph_of(heads, arcs, bins, size):
    fd = os.memfd_create("liar", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    head = struct.pack("=QQQ6I4Q4I", 0x400000, 4 * bins, 0, heads, arcs, 0, bins, 100, *[0] * 9)
    os.pwrite(fd, head, 0)
    return fd


key = word[16:]
fd = graph_of(4096, 4096, 1024, 96 + 4 * 4096 + 24 * 4096 + 4 * 1024)
if how == "key":
    key = "0" * 16
elif how == "stopped":
    key = "0" * 16
    reader, fd = os.pipe()
    os.kill(os.getppid(), signal.SIGSTOP)
elif how == "sizes":
    fd = graph_of(0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 8192)
elif how == "small":
    fd = graph_of(1, 1, 1, 16)
elif how == "file":
    fd = os.open("/dev/null", os.O_RDONLY)
if how not in ("unsealed", "file", "stopped"):
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)

s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect("\0profil-run-" + word[:16])
s.sendmsg(
    [struct.pack("=IHHII", magic, version, graph, bytes_, 0) + key.encode()],
    [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))],
)
if how == "words":
    for junk in (b"", b"x", b"y" * 4096, struct.pack("=IHHII", magic, version, 99, 16, 0)):
        s.send(junk)
if how == "stopped":
    # Nothing holds the pipe's other end if the message was dropped, although nothing received it.
    os.close(fd)
    dropped, _, _ = select.select([reader], [], [], 2)
    os.kill(os.getppid(), signal.SIGCONT)
    sys.exit(not dropped)
