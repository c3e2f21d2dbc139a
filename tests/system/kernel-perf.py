#!/usr/bin/python3
# kernel-perf.py - holds a profile against the samples that perf took of the same run
#
# usage: kernel-perf.py time JSON CPU_NS TASK_NS
#        kernel-perf.py shares|first JSON PERF_DATA COMM
#
# time:   its samples are those of CPU_NS of CPU time, or of TASK_NS of task clock (see loops.h), or
#         in between.
# shares: each function's share is perf's. A pc that perf's sample has, or for a sample in the
#         kernel the one it came from, belongs to the function of the profile in which it lies.
# first:  the function that "perf report" names first is the profile's first.
#
# Of perf's samples only those of processes named COMM count, and of "cost", which ran it.
import collections
import json
import subprocess
import sys

# Both sample the same run, each at pcs of its own. Over 10,000 samples two shares of a half differ
# by a standard deviation of 0.71 points: three points are 4.2 of those, one comparison in 37,000.
# Where there are fewer samples the limit grows with that deviation.
POINTS = 3.0
SIGMAS = 4.2
WORTH = 5.0  # percent: what is smaller than this is not compared


def perf(*args):
    done = subprocess.run(["perf", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode:
        sys.exit(f"perf {args[0]}: {done.stderr}")
    return done.stdout


def user_pcs(data, comm):
    """Counts (object, offset) over all samples; None stands for those without a user pc."""
    pcs = collections.Counter()
    for sample in perf("script", "-i", data, "-F", "comm,ip,dso").split("\n\n"):
        head, *frames = sample.strip().split("\n")
        if head.strip() not in (comm, "cost"):
            continue
        where = None
        for frame in frames:
            address, _, dso = frame.strip().partition(" ")
            if int(address, 16) < 1 << 63:
                where = (dso.strip("()"), int(address, 16))
                break
        pcs[where] += 1
    return pcs


def function_of(functions, where):
    for f in functions:
        if where and f["object"] == where[0] and f["offset"] <= where[1] < f["offset"] + f["size"]:
            return f["name"]
    return None


def shares(profile, data, comm):
    functions, counts = profile["functions"], collections.Counter()
    for where, n in user_pcs(data, comm).items():
        counts[function_of(functions, where)] += n
    total, ours = sum(counts.values()), profile["samples"]["total"]
    if not total or not ours:
        sys.exit(f"perf has {total} samples, the profile {ours}")
    bad = compared = 0
    for f in functions:
        theirs, percent = 100.0 * counts[f["name"]] / total, f["percent"]
        if max(theirs, percent) < WORTH:
            continue
        p = (theirs + percent) / 200
        limit = max(POINTS, 100 * SIGMAS * (p * (1 - p) * (1 / total + 1 / ours)) ** 0.5)
        print(f"{f['name']}: {percent:.2f} % of {ours}, perf {theirs:.2f} % of {total}, limit {limit:.2f} points")
        compared += 1
        bad += abs(theirs - percent) > limit
    return bad or not compared


# A slice more or less is half a sample at most, at random: 10,000 samples in 2000 slices have a
# standard deviation of 22, and of 65 in 17,000, the most seen.
def time(profile, cpu_ns, task_ns):
    ours, tick_ns = profile["samples"]["total"], profile["tick_ns"]
    least, most = int(cpu_ns) / tick_ns, int(task_ns) / tick_ns
    print(f"{ours} samples in {least:.0f} ticks' worth of CPU time, {most:.0f} by the task clock")
    return not least * 0.98 - 20 <= ours <= max(least, most) * 1.02 + 20


def first(profile, data, comm):
    report = perf("report", "-i", data, "--comms", comm, "--no-children", "-g", "none", "--stdio", "-q",
                  "-F", "sample,dso,sym", "-t", "|")
    rows = [[part.strip() for part in row.split("|")] for row in report.split("\n") if row.count("|") == 2]
    if not rows:
        sys.exit(f"perf report has no sample of {comm}")
    _, dso, symbol = max(rows, key=lambda row: int(row[0]))
    name, top = symbol.removeprefix("[.] ").split("@")[0], profile["functions"][0]
    print(f"perf report names {name} of {dso} first, the profile {top['name']} of {top['object']}")
    if name.startswith("0x"):  # a stripped object: perf names a pc
        return not top["offset"] <= int(name, 16) < top["offset"] + top["size"]
    return name != top["name"]


if __name__ == "__main__":
    check = {"time": time, "shares": shares, "first": first}[sys.argv[1]]
    with open(sys.argv[2], encoding="utf-8") as file:
        sys.exit(check(json.load(file), *sys.argv[3:]))
