#!/usr/bin/python3
# accuracy.py - distances between what two perfs and two profiles have seen of the machine
#
# usage: accuracy.py now
#        accuracy.py judge DIR BEGAN SECONDS
import collections
import json
import subprocess
import sys
import time


def of_perf(path, began, seconds):
    """Samples by image, and how many were lost; the idle task's are no one's."""
    counts, lost = collections.Counter(), 0
    out = subprocess.run(["perf", "script", "-i", path, "-F", "pid,time,ip,dso", "--show-lost-events"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace").stdout
    for line in out.split("\n"):
        parts = line.split(None, 3)
        if "PERF_RECORD_LOST" in line:
            lost += int(line.rpartition(" ")[2])
            continue
        if len(parts) < 4 or int(parts[0]) <= 0:
            continue
        if not began <= float(parts[1].rstrip(":")) <= began + seconds:
            continue
        if int(parts[2], 16) >> 63:
            counts["[kernel]"] += 1
        else:
            name = parts[3].strip("()").removesuffix(" (deleted)").removesuffix(" (deleted").rpartition("/")[2]
            counts["[anon]" if name == "anon" or name.startswith("perf-") else name] += 1
    return counts, lost


def of_profil(path):
    with open(path, encoding="utf-8") as file:
        p = json.load(file)
    counts = collections.Counter()
    for f in p["functions"]:
        counts[f["object"].rpartition("/")[2]] += f["samples"]
    if p["samples"]["unmatched"] + p["samples"]["lost"]:
        counts["[unknown]"] = p["samples"]["unmatched"] + p["samples"]["lost"]
    return counts


def distance(a, b):
    n, m = sum(a.values()), sum(b.values())
    return 50 * sum(abs(a[k] / n - b[k] / m) for k in a.keys() | b.keys())


def share(counts, name):
    return 100 * counts[name] / sum(counts.values())


def judge(directory, began, seconds):
    (a, a_lost), (b, b_lost) = (of_perf(f"{directory}/{x}.data", began, seconds) for x in "ab")
    clock, tick = (of_profil(f"{directory}/{x}.json") for x in ("cpu-clock", "tick"))
    seen = {"perf record -a, 499 Hz": a, "perf record -a, 487 Hz": b, "profil, cpu-clock, 503 Hz": clock,
            "profil, the tick, 250 Hz": tick}
    print(f"{'':28} samples  kernel %  no image %  distance by image, points")
    for name, counts in seen.items():
        unknown = share(counts, "[unknown]")
        print(f"{name:28} {sum(counts.values()):7}  {share(counts, '[kernel]'):8.2f}  {unknown:10.3f}  {distance(a, counts):8.2f}")
    print(f"\n{'image':28} " + " ".join(f"{n.split(',')[0][:6] + n.split(',')[1][:6]:>13}" for n in seen))
    for image, _ in a.most_common(12):
        print(f"{image[:28]:28} " + " ".join(f"{share(c, image):13.2f}" for c in seen.values()))
    kernel = (share(a, "[kernel]") + share(b, "[kernel]")) / 2
    limits = [
        ("cpu-clock: distance by image", distance(a, clock), 1.5 * distance(a, b) + 0.5),
        ("cpu-clock: share of the kernel, off by", abs(share(clock, "[kernel]") - kernel), 1),
        ("cpu-clock: samples without an image, %", share(clock, "[unknown]"), 0.01),
        ("tick: distance by image", distance(a, tick), 2),
    ]
    print()
    if a_lost + b_lost or distance(a, b) > 2:
        print(f"no verdict: perf lost {a_lost} and {b_lost} events, and the two are {distance(a, b):.2f} points apart")
        return 2
    for what, value, limit in limits:
        print(f"{what}: {value:.2f}, at most {limit:.2f}: {'met' if value <= limit else 'MISSED'}")
    return any(value > limit for _, value, limit in limits)


if sys.argv[1] == "now":
    print(time.clock_gettime(time.CLOCK_MONOTONIC))
else:
    sys.exit(judge(sys.argv[2], float(sys.argv[3]), float(sys.argv[4])))
