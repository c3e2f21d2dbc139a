# other_profilers.py - the functions of a program by profil and by its language's own profiler
#
# usage: [SHOW=1] other_profilers.py KIND FILE OBJECT JSON
#
# Prints the differences, and returns 0 when there are none; with SHOW also the largest functions of both.
#
# KIND says what wrote FILE: cprofile, cpuprofile (node --cpu-prof), xdebug, stackprof, or rows of
# PerlSampler.pm. JSON is profil's profile of the same program, with stacks; OBJECT the language there. A
# function's own time has that of the native code it calls. Profilers that count calls make short functions
# slow, and compilers inline, so shares are not compared closely: a function with 8 % by one of the two has half
# of that by the other, there with its callees. Java's own recordings have the inlined methods, profil does not,
# so only profil's are looked for there.
import collections
import json
import os
import re
import sys

FIRST, LARGE = 10, 0.08


def key(name, file):
    """The last identifier of the name, and the file without its folder."""
    name = re.sub(r"(?<=.) \(.*", "", name or "(anonymous)")
    name = re.sub(r"\{closure:[^}]*\}", "{closure}", name)  # xdebug's have file and lines
    name = re.split(r"::|->|[.#]", name)[-1]
    return re.sub(r"^(block|rescue|ensure)( \(\d+ levels\))? in ", "", name), os.path.basename(file or "")


def of_profil(path, language, files):
    """Own and inclusive samples by function."""
    profile = json.load(open(path))
    stacks, own, inclusive = profile["stacks"], collections.Counter(), collections.Counter()
    roots = len(stacks["ends"])
    number = next((i for i, o in enumerate(profile["objects"]) if o["path"] == language), None)
    of = {f[0]: key(f[3], f[4] if files else "") for f in profile["objects"][number]["interpreted"]} if number is not None else {}
    for node in stacks["nodes"]:
        count, at, met = node[4], node, []
        while count:
            frame = stacks["frames"][at[1]]
            if frame[1] == number and frame[2] in of:
                met.append(of[frame[2]])
            if at[0] < roots:
                break
            at = stacks["nodes"][at[0] - roots]
        if met:
            own[met[0]] += count
        for function in set(met):
            inclusive[function] += count
    return own, inclusive


def of_cprofile(path):
    import pstats

    own, inclusive = collections.Counter(), collections.Counter()
    for (file, line, name), (_, _, self, total, callers) in pstats.Stats(path).stats.items():
        if file != "~":
            own[key(name, file)] += self
            inclusive[key(name, file)] += total
            continue
        for (caller_file, _, caller), times in callers.items():
            if caller_file != "~":
                own[key(caller, caller_file)] += times[2]
    return own, inclusive


def of_cpuprofile(path):
    profile = json.load(open(path))
    nodes = {n["id"]: n for n in profile["nodes"]}
    parent = {child: n["id"] for n in profile["nodes"] for child in n.get("children", [])}
    own, inclusive = collections.Counter(), collections.Counter()
    for id, count in collections.Counter(profile["samples"]).items():
        met = []
        while id is not None:
            frame = nodes[id]["callFrame"]
            if frame["url"]:
                met.append(key(frame["functionName"], frame["url"]))
            id = parent.get(id)
        if met:
            own[met[0]] += count
        for function in set(met):
            inclusive[function] += count
    return own, inclusive


def of_xdebug(path):
    """Cachegrind's format: after a line calls= stands what the callee cost the caller."""
    own, inclusive, names = collections.Counter(), collections.Counter(), {}

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
            cost = int(line.split()[1])
            inclusive[function] += cost
            if callee is None or callee.startswith("php::"):
                own[function] += cost
            callee = None
    return own, inclusive


def of_rows(path):
    """Lines "OWN INCLUSIVE FILE NAME"."""
    own, inclusive = collections.Counter(), collections.Counter()
    for line in open(path):
        self, total, file, name = line.rstrip("\n").split("\t")
        own[key(name, file)] += float(self)
        inclusive[key(name, file)] += float(total)
    return own, inclusive


def of_stackprof(path):
    """Raw stacks: their length, the frames from the outermost on, and how often."""
    profile = json.load(open(path))
    own, inclusive, raw = collections.Counter(), collections.Counter(), profile["raw"]
    frames = {int(id): f for id, f in profile["frames"].items()}
    at = 0
    while at < len(raw):
        length = raw[at]
        met = [frames[id] for id in raw[at + 1:at + 1 + length]]
        count = raw[at + 1 + length]
        met = [key(f["name"], f["file"]) for f in met if f["file"] != "<cfunc>" and f.get("line")]
        if met:
            own[met[-1]] += count
        for function in set(met):
            inclusive[function] += count
        at += length + 2
    return own, inclusive


def of_jfr(path):
    """What 'jfr print --json --events jdk.ExecutionSample' prints, which has no files."""
    own, inclusive = collections.Counter(), collections.Counter()
    for event in json.load(open(path))["recording"]["events"]:
        met = [key(f["method"]["name"], "") for f in event["values"]["stackTrace"]["frames"]]
        own[met[0]] += 1
        for function in set(met):
            inclusive[function] += 1
    return own, inclusive


READERS = {
    "jfr": of_jfr,
    "cprofile": of_cprofile,
    "cpuprofile": of_cpuprofile,
    "xdebug": of_xdebug,
    "rows": of_rows,
    "stackprof": of_stackprof,
}


def large(own):
    total = sum(own.values())
    return [(f, n / total) for f, n in own.most_common(FIRST)]


def main():
    kind, path, language, ours = sys.argv[1:5]
    own, inclusive = of_profil(ours, language, kind != "jfr")
    other_own, other_inclusive = READERS[kind](path)
    if os.environ.get("SHOW"):
        for title, counts in (("profil", own), (kind, other_own)):
            print(title, *(f"\n  {share:6.1%} {name} ({file})" for (name, file), share in large(counts)))
    faults = [] if sum(own.values()) >= 200 else [f"only {sum(own.values())} samples have functions of {language}"]
    total, other_total = sum(own.values()), sum(other_own.values())
    for (name, file), share in large(own):
        if share >= LARGE and other_inclusive[name, file] < share / 2 * other_total:
            faults.append(f"{name} ({file}) has {share:.1%}, of {kind} not half of it with its callees")
    for (name, file), share in large(other_own):
        if share >= LARGE and kind != "jfr" and inclusive[name, file] < share / 2 * total:
            faults.append(f"{kind}: {name} ({file}) has {share:.1%}, here not half of it with its callees")
    if not other_total:
        faults.append(f"{path} has no times")
    print("\n".join(faults))
    sys.exit(bool(faults))


main()
