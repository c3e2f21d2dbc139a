#!/usr/bin/python3
"""client.py - hostile and demanding readers of profil-http

usage: client.py VERB SOCKET [ARG...]

idle N MOST     opens N connections and sends nothing; prints how many the server keeps, once it has closed
                all but MOST, or after 8 seconds
loris N         sends a byte of a header on each of N connections every 100 ms; prints "open", then the
                seconds until the last connection was closed
slow PATH       sends a request, prints "asked", and reads nothing until its standard input ends
flood N         for N seconds, until its standard input ends, and until 100 answers have come or a minute more, 16
                threads send valid, cut off, malformed and oversized requests and close at once or read; prints
                how many answers with status 200 came
crowd N URL     sends N requests for URL, which has seconds=S, at once; prints the number of answers with status
                200, of different pairs of snapshots, of answers that differ from others of the same pair, and
                how many milliseconds the last one came after S seconds
chain N PREFIX [WHAT]  takes N consecutive profiles of a second, and meanwhile one of N seconds; prints
                the snapshots of each; the files are PREFIX1 ... and PREFIXall; WHAT is "profile" or "stacks"
soak N PREFIX [EVERY]  takes consecutive profiles of 1 to 3 seconds for N seconds, and with every second one, or
                EVERY, the total since the start; prints "part FILE FROM-TO" or "total FILE 0-AT" for each
"""
import collections
import concurrent.futures
import re
import select
import socket
import sys
import threading
import time


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    return s


def idle(path, n, most):
    socks = []
    for _ in range(int(n)):
        try:
            socks.append(connect(path))
        except OSError:
            break
    kept = set(socks)
    # The server closes those that it refused; on the others it sends nothing before their deadline of 10 s.
    until = time.monotonic() + 8
    while kept and time.monotonic() < until:
        closed = select.select(list(kept), [], [], 0.5)[0]
        kept.difference_update(closed)
        if not closed and len(kept) <= int(most):
            break
    print(len(kept), flush=True)
    sys.stdin.read()


def loris(path, n):
    began = time.monotonic()
    alive = {connect(path) for _ in range(int(n))}
    for s in alive:
        s.setblocking(False)
        s.send(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
    print("open", flush=True)
    while alive and time.monotonic() < began + 50:
        for s in list(alive):
            try:
                s.send(b"a")
                if s.recv(1) == b"":
                    alive.discard(s)
            except BlockingIOError:
                pass
            except OSError:
                alive.discard(s)
        time.sleep(0.1)
    print("%.1f" % (time.monotonic() - began) if not alive else "never")


def slow(path, url):
    s = connect(path)
    s.send(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % url.encode())
    print("asked", flush=True)
    sys.stdin.read()


REQUESTS = [
    b"GET /debug/pprof/total HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20,
    b"GET /debug/pprof/profile?seconds=1 HTTP/1.1\r\nHost: loc",
    b"\0\xff\r\n\r\n" * 100,
    b"GET / HTTP/1.1\r\nX: " + b"x" * 60000 + b"\r\n\r\n",
    b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"GET /" + b"a/../" * 1000 + b" HTTP/9.9\r\n\r\n",
]


def flood(path, seconds):
    until = time.monotonic() + float(seconds)
    answers = [0] * 16
    going = [True]

    def send(i):
        n = i
        while going[0] or time.monotonic() < until or (sum(answers) < 100 and time.monotonic() < until + 60):
            n += 1
            try:
                with connect(path) as s:
                    s.settimeout(0.3)
                    s.sendall(REQUESTS[n % len(REQUESTS)])
                    if n % 3:
                        answers[i] += s.recv(1 << 16).startswith(b"HTTP/1.1 200")
            except OSError:
                pass

    threads = [threading.Thread(target=send, args=(i,)) for i in range(16)]
    for t in threads:
        t.start()
    sys.stdin.read()
    going[0] = False
    for t in threads:
        t.join()
    print(sum(answers))


def fetch(path, url):
    s = connect(path)
    s.send(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % url.encode())
    got = b""
    while True:
        more = s.recv(1 << 16)
        if not more:
            break
        got += more
    head, _, body = got.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(head.decode() + body.decode(errors="replace"))
    for line in head.decode().split("\r\n"):
        if line.startswith("Profil-Snapshots: "):
            return line.split()[1], body
    raise SystemExit("no snapshots in " + head.decode())


def crowd(path, n, url):
    began = time.monotonic()
    socks = [connect(path) for _ in range(int(n))]
    for s in socks:
        s.send(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % url.encode())
    pairs = collections.defaultdict(list)
    for s in socks:
        with s.makefile("rb") as f:
            head, _, body = f.read().partition(b"\r\n\r\n")
        snapshots = re.search(rb"\r\nProfil-Snapshots: (\S+)", head)
        if head.startswith(b"HTTP/1.1 200") and snapshots:
            pairs[snapshots[1]].append(body)
    late = time.monotonic() - began - float(re.search(r"seconds=(\d+)", url)[1])
    differing = sum(body != bodies[0] for bodies in pairs.values() for body in bodies)
    print(sum(map(len, pairs.values())), len(pairs), differing, int(1000 * late))


def chain(path, n, prefix, what="profile"):
    whole = []
    both = threading.Thread(
        target=lambda: whole.extend(fetch(path, "/debug/pprof/%s?seconds=%s" % (what, n))))
    both.start()
    parts = []
    for _ in range(int(n)):
        parts.append(fetch(path, "/debug/pprof/%s?seconds=1" % what))
    both.join()
    for i, (_, body) in enumerate(parts):
        with open(prefix + str(i + 1), "wb") as f:
            f.write(body)
    with open(prefix + "all", "wb") as f:
        f.write(whole[1])
    print(whole[0], *[p[0] for p in parts])


def soak(path, n, prefix, every=2):
    def save(kind, i, url):
        snapshots, body = fetch(path, url)
        name = "%s%s.%d" % (prefix, kind, i)
        with open(name, "wb") as f:
            f.write(body)
        return "%s %s %s" % (kind, name, snapshots)

    # A profile is requested 40 ms before the one before it ends, which is then given the same snapshot.
    jobs = []
    start = time.monotonic()
    end = start + float(n)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        i = 0
        while start < end:
            time.sleep(max(0, start - time.monotonic()))
            if i % int(every) == 0:
                jobs.append(pool.submit(save, "total", i, "/debug/pprof/total"))
            seconds = i % 3 + 1
            jobs.append(pool.submit(save, "part", i, "/debug/pprof/profile?seconds=%d" % seconds))
            start = time.monotonic() + seconds - 0.04
            i += 1
        time.sleep(max(0, start - time.monotonic()))
        jobs.append(pool.submit(save, "total", i, "/debug/pprof/total"))
    for job in jobs:
        print(job.result())


VERBS = {"idle": idle, "flood": flood, "loris": loris, "slow": slow, "crowd": crowd, "chain": chain, "soak": soak}
VERBS[sys.argv[1]](*sys.argv[2:])
