#!/usr/bin/env python3
"""machine-stacks.py - what the machine's profile costs with stacks and without: sudo [ROUNDS=5] machine-stacks.py

Turns "machine on -g", with its feeder, and "machine on" on in turns, beside a compiler and a program in Python on each
CPU. Prints of each the nanoseconds of a run of the kernel's programs, by kernel.bpf_stats_enabled, and how much of a
CPU they, profild and the feeder take."""
import glob
import os
import signal
import statistics
import subprocess
import tempfile
import time

BUILD = os.environ.get("BUILD", "build")
ROUNDS = int(os.environ.get("ROUNDS", "5"))
HZ, SECONDS, SETTLES_S = 97, 15, 5
SETTING = "/proc/sys/kernel/bpf_stats_enabled"

LOADS = ("while :; do cc -O2 -w -x c -c -o /dev/null {source}; done", "exec python3 -c 'while True: sorted(map(str, range(5000)))'")


def program_runs(daemon):
    """The runs and nanoseconds so far of the daemon's programs, each once."""
    seen = {}
    for path in glob.glob(f"/proc/{daemon}/fdinfo/*"):
        told = dict(line.split(":", 1) for line in open(path) if ":" in line)
        if "run_time_ns" in told:
            seen[told["prog_id"]] = int(told["run_cnt"]), int(told["run_time_ns"])
    return [sum(values) for values in zip(*seen.values())]


def cpu_ns(pid):
    """Of all threads; a worker that has ended is not in it."""
    return sum(int(open(path).read().split()[0]) for path in glob.glob(f"/proc/{pid}/task/*/schedstat"))


def turn(daemon, socket, stacks):
    def ctl(*args):
        return [BUILD + "/profilctl", "machine", *args, "-s", socket]

    subprocess.run(ctl("on", "-F", str(HZ), *(["-g"] if stacks else [])), check=True, capture_output=True)
    feeder = subprocess.Popen(ctl("feed"), stderr=subprocess.DEVNULL) if stacks else None
    time.sleep(SETTLES_S)
    pids = [daemon] + ([feeder.pid] if feeder else [])
    before, runs = [cpu_ns(pid) for pid in pids], program_runs(daemon)
    time.sleep(SECONDS)
    spent = [cpu_ns(pid) - ns for pid, ns in zip(pids, before)]
    count, ns = (now - then for now, then in zip(program_runs(daemon), runs))
    if feeder:
        feeder.send_signal(signal.SIGTERM)
        feeder.wait()
    subprocess.run(ctl("off"), check=True, capture_output=True)
    share = 100 / (SECONDS * 1e9)
    return [ns / count, ns * share, spent[0] * share, spent[1] * share if feeder else 0.0]


def main():
    setting, loads = open(SETTING).read(), []
    with tempfile.TemporaryDirectory() as folder:
        socket, source = folder + "/sock", folder + "/source.c"
        with open(source, "w") as file:
            for i in range(2000):
                file.write(f"int f{i}(int *p, int n) {{ int s = {i}; for (int i = 0; i < n; i++) s += p[i] * p[s & 7]; return s; }}\n")
        daemon = subprocess.Popen([BUILD + "/profild", "--socket", socket, "--ephemeral"], stderr=subprocess.DEVNULL)
        open(SETTING, "w").write("1")
        try:
            for cpu in os.sched_getaffinity(0):
                loads += [subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", load.format(source=source)], start_new_session=True)
                          for load in LOADS]
            while subprocess.run([BUILD + "/profilctl", "machine", "on", "-s", socket], capture_output=True).returncode:
                time.sleep(0.1)
            turns = {True: [], False: []}
            for i in range(2 * ROUNDS):
                turns[i % 2 == 0].append(turn(daemon.pid, socket, i % 2 == 0))
            for stacks, measured in turns.items():
                run, kernel, profild, feeder = (statistics.median(column) for column in zip(*measured))
                print(f"{'with stacks' if stacks else 'flat':11} {run:6.0f} ns a run; of a CPU: programs {kernel:.3f} %, "
                      f"profild {profild:.3f} %, feeder {feeder:.3f} %")
        finally:
            open(SETTING, "w").write(setting)
            for load in loads:
                os.killpg(load.pid, signal.SIGKILL)
            daemon.terminate()
            daemon.wait()


main()
