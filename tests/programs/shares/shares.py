# shares.py - functions with known shares of the CPU time, by the thread's own clock: SECONDS, lines to $TRUTH
import asyncio
import collections
import json
import multiprocessing
import os
import sys
import threading
import time
import zlib

TRUTH = collections.Counter()
TEXT = bytes(i * 7919 % 251 for i in range(60_000))
ROWS = [{"a": i, "b": [i] * 5, "c": str(i)} for i in range(600)]


def p_loop():
    t = 0
    for i in range(60_000):
        t += i * i % 7
    return t


def p_recursion(n):
    return n if n < 2 else p_recursion(n - 1) + p_recursion(n - 2)


def p_depth(n):
    if n:
        return p_depth(n - 1) + 1
    t = 0
    for i in range(60_000):
        t += i & 3
    return t


class Shape:
    def p_method(self, n):
        return sum(map(self.p_called, range(n)))

    def p_called(self, n):
        return n & 3


def p_closure():
    sorted(range(15_000), key=lambda x: x * 7919 % 251)


def p_generator():
    def numbers(n):
        for i in range(n):
            yield i & 3
    return sum(numbers(40_000))


async def p_coroutine():
    async def nothing(i):
        return i & 3
    t = 0
    for i in range(15_000):
        t += await nothing(i)
    return t


def p_exception():
    for i in range(8_000):
        try:
            raise ValueError(i)
        except ValueError:
            pass


def p_extension():
    return zlib.compress(TEXT, 6)


def p_json():
    return json.loads(json.dumps(ROWS))


def p_thread():
    for i in range(30_000):
        i * i % 7


def p_thread_without_lock():
    zlib.crc32(zlib.compress(TEXT * 2, 6))


def part(truth, name, function, *arguments):
    before = time.thread_time()
    function(*arguments)
    truth[name] += time.thread_time() - before


async def in_loop(truth):
    before = time.thread_time()
    await p_coroutine()
    truth["p_coroutine"] += time.thread_time() - before


def once(truth):
    part(truth, "p_loop", p_loop)
    part(truth, "p_recursion", p_recursion, 19)
    part(truth, "p_depth", p_depth, 60)
    part(truth, "p_method", Shape().p_method, 20_000)
    part(truth, "p_closure", p_closure)
    part(truth, "p_generator", p_generator)
    asyncio.run(in_loop(truth))
    part(truth, "p_exception", p_exception)
    part(truth, "p_extension", p_extension)
    part(truth, "p_json", p_json)


def in_thread(truth, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        part(truth, "p_thread", p_thread)
        part(truth, "p_thread_without_lock", p_thread_without_lock)


def in_process(seconds):
    truth, until = collections.Counter(), time.monotonic() + seconds
    while time.monotonic() < until:
        once(truth)
    return truth


def main(seconds):
    until = time.monotonic() + seconds / 2
    while time.monotonic() < until:
        once(TRUTH)
    truths = [collections.Counter() for _ in range(4)]
    threads = [threading.Thread(target=in_thread, args=(t, seconds / 4)) for t in truths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        truths += pool.map(in_process, [seconds / 4] * 4)
    for truth in truths:
        TRUTH.update(truth)
    with open(os.environ["TRUTH"], "a") as out:
        out.writelines(f"{name} {seconds}\n" for name, seconds in TRUTH.items())


if __name__ == "__main__":
    main(float(sys.argv[1]))
