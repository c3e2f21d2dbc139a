#!/usr/bin/env python3
"""interpreters.py - what the functions of interpreters cost a sample: sudo [ROUNDS=5] interpreters.py [KIND...]

Records programs that loop below 5 and below 65 calls, with their functions and by --native, in turns, with call
graphs and without. Prints by how many nanoseconds the kernel's programs then run longer for each sample, by
kernel.bpf_stats_enabled, and for each of the 60 calls. "none" is a program in C, without an interpreter."""
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("BUILD", "build")
ROUNDS = int(os.environ.get("ROUNDS", "5"))
CALLS = 5, 65
SETTING = "/proc/sys/kernel/bpf_stats_enabled"

SOURCES = {
    "none": ("c", None, """#include <stdlib.h>
#include <time.h>
static volatile long sum;
static __attribute__((noinline)) int turn(int n) {
	if (n) return turn(n - 1) + 1;
	while (clock() < 2 * CLOCKS_PER_SEC) for (long i = 0; i < 100000; i++) sum += i;
	return 0;
}
int main(int argc, char **argv) { return !turn(atoi(argv[1])); }
"""),
    "python": ("py", ["/usr/bin/python3"], """import sys, time
def turn(n):
    if n: return turn(n - 1)
    while time.process_time() < 2:
        for i in range(10000): pass
turn(int(sys.argv[1]))
"""),
    "node": ("js", ["node"], """function turn(n) {
  if (n) return turn(n - 1) + 1;
  let sum = 0;
  for (const end = Date.now() + 2000; Date.now() < end;) for (let i = 0; i < 100000; i++) sum += i % 7;
  return sum;
}
turn(Number(process.argv[2]));
"""),
    "php": ("php", ["php8.2"], """<?php
function turn($n) {
	if ($n) return turn($n - 1);
	for ($end = microtime(true) + 2; microtime(true) < $end;) for ($i = 0; $i < 100000; $i++);
}
turn((int)$argv[1]);
"""),
    "ruby": ("rb", ["ruby3.1"], """def turn(n)
  return turn(n - 1) if n > 0
  stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 2
  while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
    i = 0
    i += 1 while i < 10000
  end
end
turn(ARGV[0].to_i)
"""),
    "perl": ("pl", ["/usr/bin/perl"], """no warnings 'recursion';
sub turn {
	my $n = shift;
	return turn($n - 1) if $n;
	while ((times)[0] < 2) { for (my $i = 0; $i < 10000; $i++) { } }
}
turn($ARGV[0]);
"""),
    "java": ("java", ["java", "-Xint"], """public class Turn {
	static long sum;
	static int turn(int n) {
		if (n > 0) return turn(n - 1) + 1;
		long end = System.nanoTime() + 2000000000L;
		while (System.nanoTime() < end) for (int i = 0; i < 10000; i++) sum += i;
		return 0;
	}
	public static void main(String[] a) { turn(Integer.parseInt(a[0])); }
}
"""),
}


def command_of(kind, folder):
    ending, start, source = SOURCES[kind]
    path = os.path.join(folder, "Turn." + ending)
    open(path, "w").write(source)
    if start:
        return start + [path]
    subprocess.run([os.environ.get("CC", "gcc"), "-O1", "-fno-optimize-sibling-calls", "-o", path + ".program", path], check=True)
    return [path + ".program"]


def programs_of(daemon):
    """The numbers of the daemon's programs that count samples."""
    own = set()
    for fd in os.listdir(f"/proc/{daemon}/fdinfo"):
        with contextlib.suppress(FileNotFoundError):
            own |= {int(line.split()[1]) for line in open(f"/proc/{daemon}/fdinfo/{fd}") if line.startswith("prog_id:")}
    shown = json.loads(subprocess.run(["bpftool", "-j", "prog", "show"], capture_output=True, check=True).stdout)
    return [p["id"] for p in shown if p["id"] in own and p.get("name") in ("tick_event", "tick_or_exit")]


def run_ns(programs):
    shown = (subprocess.run(["bpftool", "-j", "prog", "show", "id", str(i)], capture_output=True, check=True).stdout for i in programs)
    return sum(json.loads(one).get("run_time_ns", 0) for one in shown)


def ns_of_sample(programs, socket, folder, options, command):
    kept = os.path.join(folder, "kept.json")
    before = run_ns(programs)
    subprocess.run([BUILD + "/profilctl", "record", "-q", "-s", socket, "-F", "997", "-f", "json", "-o", kept, *options,
                    "--", *command], check=True, stdout=subprocess.DEVNULL)
    spent = run_ns(programs) - before
    return spent / sum(f["samples"] for f in json.load(open(kept))["functions"])


def measure(kind, programs, socket, folder):
    command = command_of(kind, folder)
    spent = {}
    for _ in range(ROUNDS):
        for graph in [], ["-g"]:
            for calls in CALLS:
                for native in [], ["--native"]:
                    ns = ns_of_sample(programs, socket, folder, graph + native, command + [str(calls)])
                    spent.setdefault((bool(graph), calls, bool(native)), []).append(ns)
    for graph in False, True:
        more = {}
        for calls in CALLS:
            more[calls] = [a - b for a, b in zip(spent[graph, calls, False], spent[graph, calls, True])]
            print(f"{kind:7} {'-g' if graph else 'flat':5} {calls:3} calls: "
                  f"{statistics.median(spent[graph, calls, True]):7.0f} ns a sample by --native, "
                  f"{statistics.median(more[calls]):+6.0f} ns ({min(more[calls]):+.0f} to {max(more[calls]):+.0f})", flush=True)
        a_call = [(x - y) / (CALLS[1] - CALLS[0]) for x, y in zip(more[CALLS[1]], more[CALLS[0]])]
        if graph:
            print(f"{kind:7} {statistics.median(a_call):+.0f} ns for each further call", flush=True)


def main():
    setting = open(SETTING).read()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        socket = folder + "/sock"
        daemon = subprocess.Popen([BUILD + "/profild", "--socket", socket, "--ephemeral"], stderr=subprocess.DEVNULL)
        open(SETTING, "w").write("1")
        try:
            while subprocess.run([BUILD + "/profilctl", "record", "-q", "-s", socket, "-o", folder + "/kept", "--", "true"],
                                 stderr=subprocess.DEVNULL).returncode:
                time.sleep(0.1)
            programs = programs_of(daemon.pid)
            for kind in sys.argv[1:] or SOURCES:
                measure(kind, programs, socket, folder)
        finally:
            open(SETTING, "w").write(setting)
            daemon.terminate()
            daemon.wait()


main()
