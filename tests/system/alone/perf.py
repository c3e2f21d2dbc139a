#!/usr/bin/python3
# perf.py - compares a profile with the samples that perf took of the same run
#
# usage: perf.py time JSON CPU_NS TASK_NS
#        perf.py shares|first|ten|count JSON PERF_DATA COMM[,COMM...]
#
# time:   the profile has as many samples as CPU_NS of CPU time, or TASK_NS of task clock (see
#         loops.h), makes, or a number in between.
# shares: each function's share is perf's. perf's user pc, for a sample in the kernel that of the entry,
#         is assigned to the function of the profile in which it lies.
# ten:    perf's ten hottest functions, under the profile's names for them, are the profile's, and their
#         shares are perf's within the intervals of both.
# count:  both have as many samples of an event of which both sample each occurrence.
# first:  the user function that "perf report" lists first is the first in user mode of the profile, whose
#         kernel functions have rows of their own, or one whose count does not differ from the first's significantly. Where perf report has pcs only, they are
#         added up to the profile's functions.
#
# Of perf's samples only those of processes with a thread named COMM, and of "cost", which runs the
# command, count.
import collections
import functools
import json
import re
import subprocess
import sys

# Both sample the same run, each at pcs of its own. Over 10,000 samples two shares of a half differ
# by a standard deviation of 0.71 points: three points are 4.2 of those, one comparison in 37,000.
# With fewer samples the limit grows with that deviation.
POINTS = 3.0
SIGMAS = 4.2
SHOWN = 0.5  # percent: reports leave out smaller shares
TIED = 3.0  # deviations; the difference of two counts a and b of one profile has one of sqrt(a + b)
WORTH = 5.0  # percent: smaller shares are not compared, except the three hottest functions


def perf(*args):
    done = subprocess.run(["perf", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode:
        sys.exit(f"perf {args[0]}: {done.stderr}")
    return done.stdout


def object_of(dso):
    """The profile's name of @dso. perf's for memory without a file are of several kinds."""
    anonymous = dso in ("//anon", "[unknown]") or dso.startswith(("/tmp/perf-", "[anon", "[JIT]"))
    return "[anon]" if anonymous else dso


def samples(data, comm, fields):
    """Yields the event and frames, without the leading spaces, of each sample of the processes with a thread
    named so."""
    names, found, pids = (*comm.split(","), "cost"), [], set()
    for sample in perf("script", "-i", data, "-F", "comm,pid,event," + fields).split("\n\n"):
        head, *frames = sample.strip().split("\n")
        parts = re.fullmatch(r"(.*?) +(\d+) +(\S+): *", head)
        if not parts:
            continue
        name, pid, event = parts.groups()
        if name in names:
            pids.add(pid)
        if name != "profilctl":  # the process of "cost" until exec
            found.append((pid, event, frames))
    for pid, event, frames in found:
        if pid in pids:
            yield event, [frame.strip() for frame in frames]


def user_pcs(data, comm):
    """Counts (object, offset) over all samples of each event; None stands for those without a user pc."""
    pcs = collections.defaultdict(collections.Counter)
    for event, frames in samples(data, comm, "ip,dso"):
        where = None
        for frame in frames:
            address, _, dso = frame.partition(" ")
            if int(address, 16) < 1 << 63:
                where = (object_of(dso.strip("()")), int(address, 16))
                break
        pcs[event][where] += 1
    return pcs


def function_of(functions, where):
    for f in functions:
        if where and f["object"] == where[0] and f["offset"] <= where[1] < f["offset"] + f["size"]:
            return f["name"]
    return None


def perf_functions(functions, data, comm):
    """Counts perf's own functions, by event, name and object, and maps each to a function of the profile."""
    counts, ours = (collections.defaultdict(collections.Counter) for _ in range(2))
    name = functools.cache(lambda dso, pc: function_of(functions, (dso, pc)))
    for event, frames in samples(data, comm, "ip,sym,dso"):
        for frame in frames:
            address, _, rest = frame.partition(" ")
            symbol, _, dso = rest.rstrip(")").rpartition(" (")
            dso = object_of(dso)
            if int(address, 16) < 1 << 63:
                where = name(dso, int(address, 16))
                key = (symbol if symbol != "[unknown]" else where, dso)
                counts[event][key] += 1
                ours[key][where] += 1
                break
        else:
            counts[event][None] += 1
    return counts, {key: names.most_common(1)[0][0] for key, names in ours.items()}


def sigma(n, total, m, other):
    """The standard deviation of the difference of the shares of @n of @total and @m of @other samples."""
    p = (n + m) / (total + other)
    return (p * (1 - p) * (1 / total + 1 / other)) ** 0.5


def dispersion(events):
    """The factor by which the shares of two events of perf, of different rates, differ by more than chance in
    their ten hottest functions: requests that come in waves fall in step with timers. 1 for one event."""
    if len(events) < 2:
        return 1
    a, b = events.values()
    total, other = sum(a.values()), sum(b.values())
    squares = [((a[key] / total - b[key] / other) / sigma(a[key], total, b[key], other)) ** 2
               for key, _ in (a + b).most_common(10)]
    factor = max(1, sum(squares) / len(squares)) ** 0.5
    print(f"deviations between perf's events {factor:.2f} x chance")
    return factor


# Ten differences of two sampled shares: one is beyond 1.96 deviations once in 20 times, more than three
# of ten once in 1,000, and one of ten beyond 4.2 once in 3,700. Where two events of perf tell the deviation,
# it has an error of its own: more than five once in 1,500 at the worst, one of ten beyond 6 once in 800.
# Ranks 10 and 11 may be as hot as each other: a function may be missing whose count does not differ from
# our tenth's significantly (TIED).
def ten(profile, data, comm):
    events, ours = perf_functions(profile["functions"], data, comm)
    # By name and object. In a stripped object perf may split a function of ours in two.
    merged, share = collections.defaultdict(collections.Counter), collections.Counter()
    for event, counts in events.items():
        for key, n in counts.items():
            merged[event][key and (ours[key] or key[0], key[1])] += n
    factor, theirs = dispersion(merged), sum(merged.values(), collections.Counter())
    total, mine = sum(theirs.values()), profile["samples"]["total"]
    # Not those without a user pc, as at the end of a process, nor in functions where we have no sample.
    theirs = collections.Counter({key: n for key, n in theirs.items() if key and key[0]})
    many, far = (5, 6) if factor > 1 else (3, SIGMAS)
    for f in profile["functions"]:
        share[(f["name"], f["object"])] += f["samples"] / mine
    tenth = share.most_common(10)[-1][1]
    hottest = [(key, n / total) for key, n in theirs.most_common(10) if n >= total * SHOWN / 100]
    outside = wrong = 0
    for key, a in hottest:
        b = share[key]
        sigmas = abs(a - b) / sigma(a * total, total, b * mine, mine) / factor
        missing = tenth - b > TIED * ((tenth + b) / mine) ** 0.5
        print(f"{100 * b:6.2f} % of ours, {100 * a:6.2f} % of perf's, {sigmas:4.1f} deviations: {key[0]}")
        outside += sigmas > 1.96
        wrong += missing or sigmas > far
    print(f"{outside} of {len(hottest)} beyond 1.96 deviations, {wrong} missing or beyond {far}")
    return wrong or outside > many or not hottest


def shares(profile, data, comm):
    functions, events = profile["functions"], collections.defaultdict(collections.Counter)
    for event, pcs in user_pcs(data, comm).items():
        for where, n in pcs.items():
            events[event][function_of(functions, where)] += n
    factor, counts = dispersion(events), sum(events.values(), collections.Counter())
    total, ours = sum(counts.values()), profile["samples"]["total"]
    if not total or not ours:
        sys.exit(f"perf has {total} samples, the profile {ours}")
    percents = collections.Counter()  # several functions may have one name, see first()
    for f in functions:
        percents[f["name"]] += f["percent"]
    bad = compared = 0
    for name, percent in percents.most_common():
        theirs = 100.0 * counts[name] / total
        if max(theirs, percent) < WORTH and compared >= 3:
            continue
        limit = max(POINTS, 100 * SIGMAS * factor * sigma(counts[name], total, percent * ours / 100, ours))
        print(f"{name}: {percent:.2f} % of {ours}, perf {theirs:.2f} % of {total}, limit {limit:.2f} points")
        compared += 1
        bad += abs(theirs - percent) > limit
    return bad or not compared


# Each slice adds or loses at most half a sample at random: 10,000 samples in 2000 slices have a standard
# deviation of 22, in 17,000 slices, the most seen, one of 65.
def time(profile, cpu_ns, task_ns):
    ours, tick_ns = profile["samples"]["total"], profile["tick_ns"]
    least, most = int(cpu_ns) / tick_ns, int(task_ns) / tick_ns
    print(f"{ours} samples in {least:.0f} ticks' worth of CPU time, {most:.0f} by the task clock")
    return not least * 0.98 - 20 <= ours <= max(least, most) * 1.02 + 20


# perf counts from the fork of the command on, profilctl from its exec on.
def count(profile, data, comm):
    theirs, ours = sum(sum(pcs.values()) for pcs in user_pcs(data, comm).values()), profile["samples"]["total"]
    print(f"{ours} samples, of perf's {theirs}")
    return abs(ours - theirs) > 0.01 * theirs + 50


def first(profile, data, comm):
    # Without --comms, which drops samples of a function that another process's samples hit first.
    report = perf("report", "-i", data, "--no-children", "-g", "none", "--stdio", "-q",
                  "-F", "sample,comm,dso,sym", "-t", "|")
    rows = [[part.strip() for part in row.split("|", 3)] for row in report.split("\n") if row.count("|") >= 3]
    rows = [row for row in rows if row[1] in comm.split(",") and row[3].startswith("[.]")]
    if not rows:
        sys.exit(f"perf report has no sample of {comm}")
    functions = [f | {"object": f["object"].rpartition("/")[2]} for f in profile["functions"]
                 if not f["object"].startswith("[") or f["object"] in ("[anon]", "[vdso]")]
    counts = collections.Counter()
    for samples, _, dso, symbol in rows:
        dso = object_of(dso)
        name = symbol.removeprefix("[.] ").split("@")[0]
        if name.startswith("0x"):  # of a stripped object perf names pcs
            name = function_of(functions, (dso, int(name, 16))) or name
        counts[(name, dso)] += int(samples)
    # Those of an address, in the anonymous memory of a process and of its fork, have one name.
    ours = collections.Counter()
    for f in functions:
        ours[(f["name"], f["object"])] += f["samples"]
    (name, dso), (top, most) = counts.most_common(1)[0][0], ours.most_common(1)[0]
    print(f"perf report names {name} of {dso} first, the profile {top[0]} of {top[1]}")
    theirs = next((n for key, n in ours.items()  # perf leaves out parameters of C++
                   if key[1] == dso and (key[0] == name or key[0].startswith(name + "("))), 0)
    print(f"of the profile's {profile['samples']['total']} samples {most} and {theirs}")
    return most - theirs > TIED * (most + theirs) ** 0.5


if __name__ == "__main__":
    check = {"time": time, "shares": shares, "first": first, "ten": ten, "count": count}[sys.argv[1]]
    with open(sys.argv[2], encoding="utf-8") as file:
        sys.exit(check(json.load(file), *sys.argv[3:]))
