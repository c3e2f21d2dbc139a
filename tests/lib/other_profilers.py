# other_profilers.py - the functions of a program by profil and by its language's own profiler, in the same run
#
# usage: [SHOW=1] other_profilers.py KIND FILE OBJECT JSON
#
# Prints the functions whose shares differ, and returns 0 when there are none; with SHOW also the largest
# functions of both.
#
# KIND says what wrote FILE: cprofile, cpuprofile (node --cpu-prof), xdebug, or rows of PerlSampler.pm,
# java_sampler.c and ruby_sampler.c. JSON is profil's profile of that run, with stacks; OBJECT the language there.
# Compared are the ten functions with most time of their own, by either, which includes the native code that they call. The other
# profilers stop at safe points, or at each call, which costs most in functions that do little else than call: so
# shares differ more than chance would have it. JFR keeps only the stacks that it can walk, of which some methods
# have many times their part (it gave javac's argumentsAcceptable 7.1 %, others 0.4): java_sampler.c looks at the
# address of a sample first.
import collections
import json
import math
import os
import re
import sys

FIRST = 10     # the shares of so many of each differ at most by ERRORS standard errors, where a sampler wrote FILE,
ERRORS = 4
POINTS = 0.06  # or else by POINTS, or by 1/PART of the larger one
PART = 3
LARGE = 0.04   # from this share on a function is among the first AMONG of the other, too, ...
AMONG = 30
LARGEST = 0.08 # ... and from this one on has half of it there


def key(name, file):
    """The last identifier of the name, and the file without its folder."""
    name = re.sub(r"(?<=.) \(.*", "", name or "(anonymous)")
    name = re.sub(r"\{closure:[^}]*\}", "{closure}", name)  # xdebug's have file and lines
    name = re.split(r"::|->|[.#]", name)[-1]
    return re.sub(r"^(block|rescue|ensure)( \(\d+ levels\))? in ", "", name), os.path.basename(file or "")


def of_profil(path, language):
    """Own samples by function. Of Java only its methods count, not the machine's code: as by its sampler."""
    profile = json.load(open(path))
    stacks, own, java = profile["stacks"], collections.Counter(), language == "java"
    roots = len(stacks["ends"])
    number = next((i for i, o in enumerate(profile["objects"]) if o["path"] == language), None)
    of = {}
    for function in profile["objects"][number]["interpreted"] if number is not None else []:
        if (function[4] or "").endswith("PerlSampler.pm"):
            continue
        if not java or "." in function[3]:
            of[function[0]] = key(function[3], "" if java else function[4])
    for node in stacks["nodes"]:
        count, at = node[4], node
        while count:
            frame = stacks["frames"][at[1]]
            if frame[1] == number and frame[2] in of:
                own[of[frame[2]]] += count
                break
            if java or at[0] < roots:
                break
            at = stacks["nodes"][at[0] - roots]
    return own


def of_cprofile(path):
    import pstats

    own = collections.Counter()
    for (file, line, name), (_, _, self, _, callers) in pstats.Stats(path).stats.items():
        if file != "~":
            own[key(name, file)] += self
            continue
        for (caller_file, _, caller), times in callers.items():
            if caller_file != "~":
                own[key(caller, caller_file)] += times[2]
    return own


def of_cpuprofile(path):
    profile = json.load(open(path))
    nodes = {n["id"]: n for n in profile["nodes"]}
    parent = {child: n["id"] for n in profile["nodes"] for child in n.get("children", [])}
    own = collections.Counter()
    for id, count in collections.Counter(profile["samples"]).items():
        while id is not None and not nodes[id]["callFrame"]["url"]:
            id = parent.get(id)
        if id is not None:
            own[key(nodes[id]["callFrame"]["functionName"], nodes[id]["callFrame"]["url"])] += count
    return own


def of_xdebug(path):
    """Cachegrind's format: after a line calls= stands what the callee cost the caller."""
    own, names = collections.Counter(), {}

    def named(text):
        number, _, name = text.partition(" ")
        if name:
            names[number] = name
        return names[number]

    file = function = callee = None
    for line in open(path):
        line = line.strip()
        if line.startswith("fl="):
            file = named("f" + line[3:])
        elif line.startswith("fn="):
            name = named(line[3:])
            function = None if name.startswith("php::") else key(name, file)
        elif line.startswith("cfn="):
            callee = named(line[4:])
        elif line.startswith("calls="):
            callee = callee or ""
        elif re.match(r"\d+ \d+", line) and function:
            if callee is None or callee.startswith("php::"):
                own[function] += int(line.split()[1])
            callee = None
    return own


def of_rows(path):
    """Lines "SAMPLES FILE NAME"."""
    own = collections.Counter()
    for line in open(path):
        count, file, name = line.rstrip("\n").split("\t")
        own[key(name, file)] += int(count)
    return own


READERS = {
    "cprofile": of_cprofile,
    "cpuprofile": of_cpuprofile,
    "xdebug": of_xdebug,
    "rows": of_rows,
}


def shares(own):
    total = sum(own.values())
    return {function: count / total for function, count in own.most_common() if count}


def differ(a, b, samples):
    """SAMPLES are how many both have, or nothing when one of them has times."""
    most = max(a, b)
    if samples:
        both = (a * samples[0] + b * samples[1]) / sum(samples)
        return abs(a - b) > ERRORS * math.sqrt(both * (1 - both) * (1 / samples[0] + 1 / samples[1]))
    return abs(a - b) > max(POINTS, most / PART) or (most >= LARGEST and 2 * min(a, b) < most)


def is_beyond(function, share, others):
    return share >= LARGE and function not in list(others)[:AMONG]


def main():
    kind, path, language, ours = sys.argv[1:5]
    own, other = of_profil(ours, language), READERS[kind](path)
    if sum(own.values()) < 200 or not other:
        print(f"{sum(own.values())} samples have functions of {language}, {len(other)} functions are in {path}")
        sys.exit(1)
    here, there = shares(own), shares(other)
    first = {*list(here)[:FIRST], *list(there)[:FIRST]}
    samples = [sum(own.values()), sum(other.values())] if kind == "rows" else None
    faults = 0
    for function in sorted(first, key=lambda f: -here.get(f, 0)):
        a, b = here.get(function, 0), there.get(function, 0)
        fault = differ(a, b, samples) or is_beyond(function, a, there) or is_beyond(function, b, here)
        faults += fault
        if fault or os.environ.get("SHOW"):
            print(f"{a:6.1%}, by {kind} {b:6.1%}: {function[0]} ({function[1]})", "differs" if fault else "")
    sys.exit(bool(faults))


main()
