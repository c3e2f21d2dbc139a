#!/usr/bin/python3
# perf.py - compares a profile with the samples that perf took of the same run
#
# usage: perf.py time JSON CPU_NS TASK_NS
#        perf.py first|ten|every|kernel|count|agree JSON PERF_DATA COMM[,COMM...]
#        perf.py guesses JSON PERCENT
#
# time:   the profile has as many samples as CPU_NS of CPU time, or TASK_NS of task clock (see
#         loops.h), makes, or a number in between.
# ten:    perf's ten hottest functions, under the profile's names for them, are the profile's, and their
#         shares are perf's within EFFECT.
# every:  perf's ten hottest functions, as "ten" has them; each event is a sample, so that the shares have no deviation.
# kernel: the profile, whose kernel functions have rows of their own, has perf's share of samples in kernel
#         mode; perf's five hottest functions of the kernel are functions of the profile, with perf's shares.
# guesses: each function without a symbol is one by the unwind information of its file, or a part of one
#         beside a symbol. At most PERCENT of the samples are where there is neither.
# agree:  perf's events, where there are two, differ by no more than DISAGREE.
# count:  both have as many samples of an event of which both sample each occurrence.
# first:  the user function that "perf report" lists first is the first in user mode of the profile, whose
#         kernel functions have rows of their own, or the two are so close that chance can reverse them in one of
#         the profiles. Where perf report has pcs only, they are added up to the profile's functions.
#
# Of perf's samples only those of processes with a thread named COMM, and of "cost", which runs the
# command, count. If COMM is "cost", all of its descendants do, whatever their names.
#
# "ten" and "kernel" take the deviation of a share from 20 batches of perf's samples, as tests/lib/verdict.py does;
# the profile's samples of the same run have the same. They end with 0 where all shares are perf's, with 1 after a
# line "beyond SIDE FUNCTION" for each that is not, and with 3 where more samples decide.
import bisect
import collections
import functools
import json
import math
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
import verdict  # noqa: E402

EFFECT = 0.02  # of a share: what would be a defect
BLOCK = 10  # samples
SURE = 50  # expected samples: a function that has none of them is missing
UNDECIDED = 3
SIGMAS = 4.2  # one comparison of two sampled shares in 37,000 is beyond
LEAST = 1000  # samples: fewer agree with nearly anything
SHOWN = 0.5  # percent: reports leave out smaller shares
DISAGREE = 3.0  # times chance: by which two events of perf may differ
KERNEL = 1 << 63  # lowest address of the kernel
# A profiler's timer that expires during another interrupt is taken where that one returns to user mode. How many
# of its samples are there depends on how long the handlers of the other profilers take, not on the program.
LATE = {"irqentry_exit_to_user_mode", "irqentry_exit"}
# While execve() frees the memory of the old program, perf counts at the old program's call of it, by the mappings that
# it had. The profile, by those that there are, finds none there. A build spends 1 % of its time so.
REPLACES = {"execve", "__execve", "__GI___execve"}


def perf(*args):
    done = subprocess.run(["perf", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode:
        sys.exit(f"perf {args[0]}: {done.stderr}")
    return done.stdout


def object_of(dso):
    """The profile's name of @dso. perf's for memory without a file are of several kinds."""
    anonymous = dso in ("//anon", "[unknown]") or dso.startswith(("/tmp/perf-", "[anon", "[JIT]"))
    return "[anon]" if anonymous else dso


def kept(data, name, make):
    """What @make() returns, in a file beside @data: every check of a recording needs it."""
    path = f"{data}.{name}"
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(data):
        with open(path, "w", encoding="utf-8") as file:
            file.write(make())
    with open(path, encoding="utf-8") as file:
        return file.read()


Frame = collections.namedtuple("Frame", "address symbol offset dso")  # @symbol is empty where perf has none


def frame_of(line):
    address, _, rest = line.strip().partition(" ")
    rest, _, dso = rest.rstrip(")").rpartition(" (")
    symbol, _, offset = rest.rpartition("+")
    return Frame(int(address, 16), symbol, int(offset, 16) if symbol else 0, object_of(dso))


@functools.cache
def tree(data):
    """The ids of "cost" and its descendants, and of their threads. In a recording of the whole machine, others may
    have their names."""
    children, threads, pids = collections.defaultdict(list), collections.defaultdict(list), []
    text = kept(data, "tasks", lambda: "\n".join(
        line for line in perf("script", "--show-task-events", "-i", data, "-F", "comm,pid,tid,time,event").split("\n")
        if "PERF_RECORD_" in line))
    for line in text.split("\n"):
        if fork := re.search(r"PERF_RECORD_FORK\((\d+):(\d+)\):\((\d+):", line):
            if fork[1] == fork[3]:
                threads[fork[1]].append(fork[2])
            else:
                children[fork[3]].append(fork[1])
        elif cost := re.search(r"PERF_RECORD_COMM exec: cost:(\d+)/", line):
            pids.append(cost[1])
    for pid in pids:
        pids += children.pop(pid, [])
    return {id for pid in pids for id in (pid, *threads[pid])}


def only(data, comm):
    """perf's option for the samples of processes that may be those of @comm."""
    return ["--pid", ",".join(tree(data))] if comm == "cost" else []


def samples(data, comm):
    """Yields the event and frames of each sample of the processes with a thread named so, or of the tree of "cost"."""
    found, frame = [], functools.cache(frame_of)
    names, pids = ((), tree(data)) if comm == "cost" else ((*comm.split(","), "cost"), set())
    text = kept(data, "script", lambda: perf(
        "script", "--no-inline", "-i", data, "-F", "comm,pid,event,ip,sym,symoff,dso", *only(data, comm)))
    for sample in text.split("\n\n"):
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
            yield event, [frame(line) for line in frames]


def batches(data, comm):
    """Yields the samples with the number of their batch. Each batch has blocks of all of the run, as the phases of a
    program are those of both profilers; a block is longer than a time slice's samples, which belong together."""
    for i, (_, frames) in enumerate(samples(data, comm)):
        yield i // BLOCK % verdict.BATCHES, frames


def user_frame(frames):
    return next((frame for frame in frames if frame.address < KERNEL), None)


def user_pcs(data, comm):
    """Counts (object, offset) over all samples of each event; None stands for those without a user pc."""
    pcs = collections.defaultdict(collections.Counter)
    for event, frames in samples(data, comm):
        frame = user_frame(frames)
        pcs[event][frame and (frame.dso, frame.address)] += 1
    return pcs


def function_of(functions, where):
    for f in functions:
        if where and f["object"] == where[0] and f["offset"] <= where[1] < f["offset"] + f["size"]:
            return f["name"]
    return None


def perf_functions(functions, found):
    """Counts perf's own functions, by event or batch, under the profile's names for them, and object. In a stripped object
    perf may split a function of ours in two; functions of one name are those that differ in their parameters."""
    counts, ours = (collections.defaultdict(collections.Counter) for _ in range(2))
    name = functools.cache(lambda dso, pc: function_of(functions, (dso, pc)))
    for event, frames in found:
        frame = user_frame(frames)
        if not frame:
            counts[event][None] += 1
            continue
        where = name(frame.dso, frame.address)
        key = (frame.symbol or where, frame.dso, frame.address - frame.offset if frame.symbol else None)
        counts[event][key] += 1
        ours[key][where] += 1
    merged = collections.defaultdict(collections.Counter)
    for event, theirs in counts.items():
        for key, n in theirs.items():
            merged[event][key and (ours[key].most_common(1)[0][0] or key[0], key[1])] += n
    return merged


def enough(total, mine):
    if min(total, mine) < LEAST:
        sys.exit(f"perf has {total} samples, the profile {mine}: too few to be compared")


def sigma(n, total, m, other):
    """The standard deviation of the difference of the shares of @n of @total and @m of @other samples."""
    p = min(max((n + m) / (total + other), 1e-6), 1 - 1e-6)
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
    if factor > DISAGREE:
        sys.exit(f"perf's own events disagree by more than {DISAGREE:.0f} x chance: this run allows for no comparison")
    return factor


def share_of(counts, key):
    return counts[key] / max(sum(counts.values()), 1)


class Comparison:
    """Of the profile's shares with those in perf's batches. Where perf has two events, of two rates, half of their
    difference is in doubt, too: requests that come in waves fall in step with timers."""

    def __init__(self, by_batch, by_event, mine, every=False):
        self.batches, self.events, self.mine, self.every = by_batch, list(by_event.values()), mine, every
        self.total = sum(sum(counts.values()) for counts in by_batch.values())
        enough(self.total, mine)
        self.beyond, self.undecided = [], False

    def compare(self, name, b, share):
        """@share(counts) is perf's."""
        a, half = verdict.interval([share(counts) for counts in self.batches.values()])
        half *= math.sqrt(1 + self.total / self.mine)
        if len(self.events) == 2:
            half += abs(share(self.events[0]) - share(self.events[1])) / 2
        if self.every:
            half = 0
        print(f"{100 * b:6.2f} % of ours, {100 * a:6.2f} % of perf's, +- {100 * half:.2f} points: {name}")
        if abs(b - a) - half > EFFECT or (b == 0 and a * self.mine >= SURE):
            self.beyond.append(f"beyond {'+' if b > a else '-'} {name}")
        elif abs(b - a) + half > EFFECT:
            self.undecided = True

    def end(self):
        print("\n".join(self.beyond))
        return 1 if self.beyond else UNDECIDED if self.undecided else 0


def ten(profile, data, comm, every=False):
    functions, share = profile["functions"], collections.Counter()
    by_batch = perf_functions(functions, batches(data, comm))
    mine = profile["samples"]["total"]
    compared = Comparison(by_batch, perf_functions(functions, samples(data, comm)), mine, every)
    for f in functions:
        share[(f["name"], f["object"])] += f["samples"] / mine
    # Not those without a user pc, as at the end of a process, nor in functions where we have no sample.
    hottest = [key for key, n in sum(by_batch.values(), collections.Counter()).most_common()
               if key and key[0] and key[0] not in REPLACES and n >= compared.total * SHOWN / 100][:10]
    for key in hottest:
        compared.compare(key[0], share[key], lambda counts, key=key: share_of(counts, key))
    return compared.end() if hottest else 1


def kernel_functions(found):
    """Counts the start addresses of perf's functions of the kernel, by event or batch; None stands for user mode. And
    the names of these functions."""
    counts, names = collections.defaultdict(collections.Counter), {}
    for event, frames in found:
        start = None
        if frames and frames[0].address >= KERNEL:
            start = frames[0].address - frames[0].offset
            names[start] = frames[0].symbol
            if frames[0].symbol in LATE:
                continue
        counts[event][start] += 1
    return counts, names


def kernel_text():
    """The address of _text: kernel functions of a profile have offsets from it."""
    with open("/proc/kallsyms", encoding="utf-8") as file:
        return next(int(line.split()[0], 16) for line in file if line.split()[2] == "_text")


# Of several names for an address, perf may choose another than the profile.
def kernel(profile, data, comm):
    by_batch, names = kernel_functions(batches(data, comm))
    functions = [f for f in profile["functions"] if f["object"] == "[kernel]"]
    late = sum(f["samples"] for f in functions if f["name"] in LATE)
    mine, ours = profile["samples"]["total"] - late, sum(f["samples"] for f in functions) - late
    counts = sum(by_batch.values(), collections.Counter())
    if len(counts) < 2 or not ours or ours + late != profile["samples"]["kernel"]:
        sys.exit(f"perf has {len(counts)} functions, the profile's {ours + late} of {profile['samples']['kernel']} samples in the kernel")
    compared = Comparison(by_batch, kernel_functions(samples(data, comm))[0], mine)
    compared.compare("all of the kernel", ours / mine, lambda counts: 1 - share_of(counts, None))
    text = kernel_text()
    share = {text + f["offset"]: f["samples"] / mine for f in functions}
    for start, n in counts.most_common(6):
        if start and n >= compared.total * SHOWN / 100:
            compared.compare(names[start], share.get(start, 0), lambda counts, start=start: share_of(counts, start))
    return compared.end()


def agree(profile, data, comm):
    if len(user_pcs(data, comm)) != 2:
        sys.exit(f"perf has samples of {len(user_pcs(data, comm))} events, not of two")
    for events in perf_functions(profile["functions"], samples(data, comm)), kernel_functions(samples(data, comm))[0]:
        dispersion(events)


# Each slice adds or loses at most half a sample at random: 10,000 samples in 2000 slices have a standard
# deviation of 22, in 17,000 slices, the most seen, one of 65.
def time(profile, cpu_ns, task_ns):
    ours, tick_ns = profile["samples"]["total"], profile["tick_ns"]
    least, most = int(cpu_ns) / tick_ns, int(task_ns) / tick_ns
    print(f"{ours} samples in {least:.0f} ticks' worth of CPU time, {most:.0f} by the task clock")
    side = "-" if ours < least * 0.98 - 20 else "+" if ours > max(least, most) * 1.02 + 20 else ""
    print(f"beyond {side} CPU time" if side else "")
    return bool(side)


# perf counts from the fork of the command on, profilctl from its exec on.
def count(profile, data, comm):
    theirs, ours = sum(sum(pcs.values()) for pcs in user_pcs(data, comm).values()), profile["samples"]["total"]
    print(f"{ours} samples, of perf's {theirs}")
    return abs(ours - theirs) > 0.01 * theirs + 50


# Each profile has a difference of the two counts, and their signs differ: what is between them is beyond 4.2
# deviations once in 75,000 times.
def first(profile, data, comm):
    # Without --comms, which drops samples of a function that another process's samples hit first.
    by_id = comm == "cost"  # a column of tid:comm
    report = perf("report", "-i", data, "--no-children", "-g", "none", "--stdio", "-q",
                  "-F", f"sample,{'pid' if by_id else 'comm'},dso,sym", "-t", "|", *only(data, comm))
    rows = [[part.strip() for part in row.split("|", 3)] for row in report.split("\n") if row.count("|") >= 3]
    wanted = tree(data) if by_id else comm.split(",")
    rows = [row for row in rows if (row[1].split(":")[0] if by_id else row[1]) in wanted and row[3].startswith("[.]")]
    if not rows:
        sys.exit(f"perf report has no sample of {comm}")
    functions = [f | {"object": f["object"].rpartition("/")[2]} for f in profile["functions"]
                 if not f["object"].startswith("[") or f["object"] in ("[anon]", "[vdso]")]
    counts = collections.Counter()
    for number, _, dso, symbol in rows:
        dso = object_of(dso)
        name = symbol.removeprefix("[.] ").split("@")[0]
        if name.startswith("0x"):  # of a stripped object perf names pcs
            name = function_of(functions, (dso, int(name, 16))) or name
        counts[(name, dso)] += int(number)
    # Those of an address, in the anonymous memory of a process and of its fork, have one name.
    ours = collections.Counter()
    for f in functions:
        ours[(f["name"], f["object"])] += f["samples"]
    (name, dso), (top, most) = counts.most_common(1)[0][0], ours.most_common(1)[0]
    print(f"perf report names {name} of {dso} first, the profile {top[0]} of {top[1]}")
    # perf leaves out parameters of C++. A function that it has no row for counts like its first.
    is_named = lambda ours, theirs: ours[1] == theirs[1] and (ours[0] == theirs[0] or ours[0].startswith(theirs[0] + "("))
    theirs = next((n for key, n in ours.items() if is_named(key, (name, dso))), 0)
    best = counts[(name, dso)]
    second = next((n for key, n in counts.items() if is_named(top, key)), best)
    mine, total = sum(ours.values()), sum(counts.values())
    deviation = ((most + theirs + best + second) / (mine + total) * (1 / mine + 1 / total)) ** 0.5
    deviation *= dispersion(perf_functions(profile["functions"], samples(data, comm)))
    sigmas = ((most - theirs) / mine + (best - second) / total) / deviation
    print(f"of the profile's {mine} samples {most} and {theirs}, of perf's {total} {second} and {best}: {sigmas:.1f} deviations")
    print(f"beyond {top[0]}" if sigmas > SIGMAS else "")
    return sigmas > SIGMAS


def unwind_ranges(path):
    """The functions [start, end) of the unwind information of file @path, sorted."""
    dump = subprocess.Popen(["readelf", "--debug-dump=frames", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with dump:
        found = re.findall(r" pc=([0-9a-f]+)[.][.]([0-9a-f]+)$", dump.stdout.read(), re.MULTILINE)
    return sorted((int(start, 16), int(end, 16)) for start, end in found)


def guess(ranges, start, end):
    """What [start, end) is by the unwind information: None: a function, or a part of one that has a limit in
    common with it; else whether there is any for it. Both lists are disjoint, or nearly so."""
    below = bisect.bisect_left(ranges, (end, 0)) - 1  # the last function that begins before @end
    if below < 0 or ranges[below][1] <= start:
        return "nothing known"
    if ranges[below][0] <= start and end <= ranges[below][1] and (ranges[below][0] == start or ranges[below][1] == end):
        return None
    return "guessed"


# A file without symbols may have code without unwind information: a few lines of assembly in every library, and
# nearly all of a browser. Such functions are named after their page, which is no guess: nothing is known of them.
def guesses(profile, percent):
    objects, ranges, samples = profile["objects"], {}, collections.Counter()
    for f in profile["functions"]:
        path, start = f["object"], f["offset"] + objects[f["object_index"]]["vaddr"]
        if f["named"] or path == "[anon]":
            continue
        if path not in ranges:
            ranges[path] = unwind_ranges(path)
        what = guess(ranges[path], start, start + f["size"])
        samples[what] += f["samples"]
        if what == "guessed" and samples[what] < 20:
            print(f"{f['samples']} samples in {f['size']} bytes at {start:#x} of {path}")
    total = profile["samples"]["total"]
    print(f"of {total} samples {samples[None]} in functions without a symbol, {samples['guessed']} in others by guess, "
          f"{samples['nothing known']} where nothing is known")
    return samples["guessed"] > 0 or samples["nothing known"] > total * float(percent) / 100


if __name__ == "__main__":
    check = {"time": time, "first": first, "ten": ten, "kernel": kernel, "count": count,
             "every": functools.partial(ten, every=True), "guesses": guesses, "agree": agree}[sys.argv[1]]
    with open(sys.argv[2], encoding="utf-8") as file:
        sys.exit(check(json.load(file), *sys.argv[3:]))
