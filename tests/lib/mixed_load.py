#!/usr/bin/python3
"""mixed_load.py - programs that never ran before, bursts of forks and interpreters, within a part of one CPU

usage: mixed_load.py PERCENT DIR    runs until it is killed; DIR is where new programs are built
"""
import os
import subprocess
import sys
import time

SOURCE = """volatile long s;
__attribute__((noipa)) void leaf_{n}(void) {{ for (long i = 0; i < {rounds}; i++) s += i ^ {n}; }}
__attribute__((noipa)) void caller_{n}(void) {{ leaf_{n}(); s++; }}
int main(void) {{ caller_{n}(); }}
"""


def run_new_program(directory, n):
    path = f"{directory}/new.{n}"
    with open(path + ".c", "w") as f:
        f.write(SOURCE.format(n=n, rounds=20000000 + n))
    subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-o", path, path + ".c"], check=True)
    subprocess.run([path], check=True)
    os.remove(path)
    os.remove(path + ".c")


def fork_burst(_directory, _n):
    for _ in range(4):
        children = []
        for _ in range(50):
            child = os.fork()
            if not child:
                os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
    for _ in range(20):
        subprocess.run(["true"], check=True)


def sort_words(n):
    return sorted(str(i * n % 10007) for i in range(20000))


def interpret(_directory, n):
    for i in range(10):
        sort_words(n + i + 1)
    subprocess.run(["perl", "-e", "my %h; $h{$_ % 1000} .= $_ for 1 .. 100000;"], check=True)


def compress(_directory, _n):
    subprocess.run(["sh", "-c", "xz -0 -T1 -c /usr/bin/git | gzip -1 >/dev/null"], check=True)


def main():
    share, directory = int(sys.argv[1]) / 100, sys.argv[2]
    kinds = (run_new_program, fork_burst, interpret, compress)
    began, n = time.monotonic(), 0
    while True:
        kinds[n % len(kinds)](directory, n)
        n += 1
        time.sleep(max(0.0, sum(os.times()[:4]) / share - (time.monotonic() - began)))


main()
