# functions.py - what holds for each sample of a program whose outer() calls method(), recursive(), inner()
#
# usage: functions.py JSON whole|some|inlined    prints the faults, and returns 0 when there are none
#
# recursive() calls itself five times and then inner(). "some": one sample has all of them, others can be
# at the begin or end of a function. "inlined": a compiler may have made functions part of their callers. Samples of before the interpreter was described have none of the functions.
import json
import re
import sys

profile, inlined = json.load(open(sys.argv[1])), sys.argv[2] != "whole"
stacks, order = profile["stacks"], ["outer", "method", "recursive", "inner"]
roots = len(stacks["ends"])
faults, seen, complete = [], 0, 0
for node in stacks["nodes"]:
    path, loops, at = [], 0, node
    while True:
        name = stacks["frames"][at[1]][0] or ""
        path.append(re.split(r"[.#:]", name)[-1])
        loops += name == "_PyEval_EvalFrameDefault" or name.startswith("Perl_runops")
        if at[0] < roots:
            break
        at = stacks["nodes"][at[0] - roots]
    own = [name for name in reversed(path) if name in order]
    if not node[4] or not own:
        continue
    seen += node[4]
    if path[0].startswith("Perl_pp_"):
        faults.append("an operation is the leaf instead of its function: " + " ".join(reversed(path)))
    if loops:
        faults.append("the evaluation loop is a frame beside its functions: " + " ".join(reversed(path)))
    if own != sorted(own, key=order.index) or not inlined and own[0] != "outer":
        faults.append("in this order: " + " ".join(own))
    complete += [own.count(name) for name in order] == [1, 1, 6, 1]
    if not inlined and own[-1] == "inner" and [own.count(name) for name in order] != [1, 1, 6, 1]:
        faults.append("callers are missing: " + " ".join(own))
samples = profile["samples"]
if sys.argv[2] == "some" and not complete:
    faults.append("no sample has all callers")
if not seen:
    faults.append("no sample is in the program's functions")
if samples["total"] != samples["binned"] + samples["unmatched"] + samples["lost"]:
    faults.append(f"samples do not add up: {samples}")
print("\n".join(faults[:5]))
sys.exit(bool(faults))
