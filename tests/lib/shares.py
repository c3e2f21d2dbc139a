# shares.py - the samples of a program with known shares: JSON LINES TRUTH LANGUAGE SOURCE
#
# JSON and LINES are a recording's reports of stacks and of 'report -a --by line'. TRUTH has lines "p_NAME SECONDS", of
# which the sums count; a sample below p_NAME() is p_NAME()'s. Each share must be within 4 standard errors of the
# clock's, 99 % of the samples with a frame of LANGUAGE whole once the rules of their files are known, and each line of a p_NAME() one of its own in SOURCE.
# Prints the shares, then the faults, and returns 0 when there are none.
import collections
import json
import os
import re
import sys

profile, truth = json.load(open(sys.argv[1])), collections.Counter()
for line in open(sys.argv[3]):
    truth[line.split()[0]] += float(line.split()[1])
language, source, stacks = sys.argv[4], open(sys.argv[5]).readlines(), profile["stacks"]
roots = len(stacks["ends"])
of_part, whole, interpreted, early, faults = collections.Counter(), 0, 0, 0, []


def part_of(name):
    """The part of which NAME is, with its package or class, or a block or function inside of it."""
    found = re.search(r"\bp_[a-z_]+", name or "")
    return found and found.group() in truth and found.group()


for node in stacks["nodes"]:
    at, part, is_interpreted = node, None, False
    while node[4]:
        name, of, _ = stacks["frames"][at[1]]
        if profile["objects"][of]["path"] == language:
            is_interpreted = True
            part = part_of(name) or part
        if at[0] < roots:
            break
        at = stacks["nodes"][at[0] - roots]
    end = node[4] and stacks["ends"][at[0]]["end"]
    if is_interpreted:
        interpreted += node[4] * (end != "not_yet")
        whole += node[4] * (end == "whole")
        early += node[4] * (end == "not_yet")
    if part:
        of_part[part] += node[4]

n, seconds = sum(of_part.values()), sum(truth.values())
for name in sorted(truth):
    clock, share = truth[name] / seconds, of_part[name] / max(n, 1)
    errors = (share - clock) / (clock * (1 - clock) / max(n, 1)) ** 0.5
    print(f"{name:22} {100 * clock:6.2f} % by the clock, {100 * share:6.2f} % by samples: {errors:+.1f} standard errors")
    if abs(errors) > 4:
        faults.append(f"{name}() has {100 * share:.2f} % of the samples, by the clock {100 * clock:.2f} %")
print(f"{whole} of {interpreted} samples with a function of {language} are whole, {early} were before the rules of their files")
if interpreted < 1000 or whole < 0.99 * interpreted:
    faults.append("fewer than 99 % of 1000 samples or more are whole")
samples, functions = profile["samples"], sum(f["samples"] for f in profile["functions"])
if samples["total"] != samples["binned"] + samples["unmatched"] + samples["lost"] or functions != samples["binned"]:
    faults.append(f"samples do not add up: {functions} in functions, {samples}")

DEFINITION = r"\s*(?:(?:async )?def |function\*? |sub |static \w+ |long )(p_[a-z_]+)\b|\s*(p_[a-z_]+)\(.*\) \{$"
starts = [(number, found.group(1) or found.group(2)) for number, line in enumerate(source, 1) if (found := re.match(DEFINITION, line))]
own = {}
for (start, name), (end, _) in zip(starts, starts[1:] + [(len(source) + 1, "")]):
    own.setdefault(name, range(start, end))
seen = set()
for row in open(sys.argv[2]):
    columns = re.split(r"\s{2,}", row.strip())
    place, _, function = columns[-2].partition(" ") if columns[-1] == language else ("", "", "")
    file, _, line = place.rpartition(":")
    name = part_of(function)
    if name and file == os.path.basename(sys.argv[5]):
        seen.add(name)
        if int(line) not in own[name]:
            faults.append(f"{function} is said to be in line {line}, it has {own[name]}")
    elif name and file != "?":  # where the runtime has no lines
        faults.append(f"{function} is said to be in {file}")
if len(seen) < 3 and language != "java":
    faults.append(f"only {sorted(seen)} have lines")
print("\n".join(faults[:8]))
sys.exit(bool(faults))
