#!/usr/bin/python3
"""stacks.py - writes a profile with stacks of known counts: stacks.py FILE
[small|other|large|groups|units|slices|threads|recursion|namesakes]

By default main calls hot, which calls itself and cold; hot enters the kernel; there are inlined functions, names
with markup, stacks that were cut, and samples without a stack. 'other' is the same program with more of cold;
'large' has 120000 contexts of long names; in 'groups' the samples are of two processes; 'slices' has their times; 'units' is as the machine's profile, whose
stacks are of a unit and of two containers, and whose places are not; in
'threads' two threads run the same, and have times; in
'recursion' functions call each other; in 'namesakes' two static functions have one name.
"""
import json
import random
import sys

NASTY = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> & \\ ' \" \u2028 \n end"
SPIN, ANON, KERNEL, THREADS = 0, 1, 2, 3
ENDS = 3


def small(cold):
    """frames: name, object, offset; nodes: parent (0 to 2: an end), frame, object, offset, count."""
    frames = [["main", SPIN, 16], ["hot", SPIN, 256], ["cold", SPIN, 512], [None, ANON, 1 << 40], ["do_it", KERNEL, 64],
              ["inner", SPIN, 0], [NASTY, SPIN, 1024]]
    nodes = [[0, 0, SPIN, 20, 0],  # 3: main
             [3, 1, SPIN, 260, 7000],  # 4: hot
             [3, 1, SPIN, 264, 0],  # 5: hot, elsewhere
             [5, 1, SPIN, 268, 10],  # 6: hot, called by itself
             [6, 2, SPIN, 520, cold],  # 7: cold
             [1, 2, SPIN, 524, 20],  # 8: cold, cut: no rules
             [0, 3, ANON, 1 << 40, 10],  # 9: a start without a name
             [3, 1, SPIN, 272, 0],  # 10: hot
             [10, 4, KERNEL, 70, 40],  # 11: the kernel
             [4, 5, SPIN, 260, 500],  # 12: inlined into hot
             [3, 6, SPIN, 1030, 60]]  # 13: a name that needs care
    places = [[SPIN, 260, 1, 7500], [SPIN, 268, 1, 10], [SPIN, 520, 1, cold], [SPIN, 524, 1, 20], [ANON, 1 << 40, 1, 10],
              [KERNEL, 70, 1, 40], [SPIN, 1030, 1, 60], [SPIN, 272, 1, 5]]
    return frames, nodes, places


def recursion():
    """Stacks of functions that call each other."""
    frames = [["a", SPIN, 256], ["b", SPIN, 512], ["c", SPIN, 768]]
    stacks = {"ababc": 10, "bac": 5, "a": 3, "cab": 7}
    nodes, ids = [], {"": 0}
    for stack, count in stacks.items():
        for n in range(len(stack)):
            if stack[:n + 1] not in ids:
                f = ord(stack[n]) - ord("a")
                nodes.append([ids[stack[:n]], f, SPIN, frames[f][2] + 4, 0])
                ids[stack[:n + 1]] = len(nodes) - 1 + ENDS
        nodes[ids[stack] - ENDS][4] = count
    return frames, nodes, [[SPIN, 260, 1, 3], [SPIN, 516, 1, 7], [SPIN, 772, 1, 15]]


def threads():
    """Two threads, both of which call hot; of one a stack was cut, too."""
    frames = [["main", SPIN, 16], ["hot", SPIN, 256], ["cold", SPIN, 512], ["one (11)", THREADS, 1], ["two (12)", THREADS, 2]]
    nodes = [[0, 3, THREADS, 1, 0], [3, 0, SPIN, 20, 0], [4, 1, SPIN, 260, 60],  # 3 to 5: one, main, hot
             [0, 4, THREADS, 2, 0], [6, 0, SPIN, 20, 0], [7, 1, SPIN, 260, 40],  # 6 to 8: two
             [1, 3, THREADS, 1, 0], [9, 2, SPIN, 524, 20]]  # 9 and 10: one, cold
    return frames, nodes, [[SPIN, 260, 1, 60, 1], [SPIN, 260, 1, 40, 2], [SPIN, 524, 1, 20, 1]]


CONTAINERS = ["/docker-%s.scope" % (digit * 64) for digit in "ab"]


def units():
    """The same stacks in two containers and a unit, which alone enters the kernel; one is of no group."""
    frames = [["main", SPIN, 16], ["hot", SPIN, 256], ["do_it", KERNEL, 64]]
    nodes = [[0, 0, SPIN, 20, 0], [3, 1, SPIN, 260, 60],  # 3 and 4: in the first container
             [0, 0, SPIN, 20, 0], [5, 1, SPIN, 260, 30],  # 5 and 6: in the second one
             [0, 0, SPIN, 20, 5], [7, 1, SPIN, 260, 10],  # 7 and 8: in the unit, where 9 is in the kernel
             [8, 2, KERNEL, 70, 4], [0, 0, SPIN, 20, 2]]
    return frames, nodes, [[SPIN, 260, 1, 100], [SPIN, 20, 1, 7], [KERNEL, 70, 1, 4]]


def namesakes():
    """a calls b, which calls another function a."""
    frames = [["a", SPIN, 256], ["b", SPIN, 512], ["a", SPIN, 768]]
    nodes = [[0, 0, SPIN, 260, 0], [3, 1, SPIN, 516, 0], [4, 2, SPIN, 772, 10]]
    return frames, nodes, [[SPIN, 772, 1, 10]]


def large():
    random.seed(1)
    frames = [[f"std::vector<std::map<std::__cxx11::basic_string<char>, part{i}>, std::allocator<part{i}> >::emplace_back<{'x' * (i % 150)}>(int&&)",
               SPIN, i << 8] for i in range(20000)]
    nodes = []
    for i in range(120000):
        parent = 0 if i < 50 else random.randrange(max(ENDS, i + ENDS - 3000), i + ENDS)
        nodes.append([parent, random.randrange(len(frames)), SPIN, i, random.randrange(1, 20)])
    return frames, nodes, [[SPIN, 0, 1, sum(n[4] for n in nodes)]]


def profile(frames, nodes, places, unmatched, lost):
    functions = {}
    for object, offset, _, count, *_ in places:
        of = max((f for f in frames if f[1] == object and f[2] <= offset and f[0] != "inner"), key=lambda f: f[2])
        functions.setdefault((object, of[2], of[0]), []).append(count)
    paths = ["/opt/my program/spin", "[anon]", "[kernel]"]
    binned = sum(p[3] for p in places)
    return {
        "schema": "profil/1", "command": "spin split", "pid": 1, "started": 1700000000, "command_status": 0, "tick_ns": 1000000,
        "duration_ns": 10**10, "cpu_ns": 0,
        "samples": {"total": binned + unmatched + lost, "binned": binned, "unmatched": unmatched, "lost": lost},
        "functions": [{"name": name or "", "object": paths[object], "object_index": object, "samples": sum(counts), "offset": offset, "size": 200,
                       "named": name is not None} for (object, offset, name), counts in functions.items()],
        "objects": [{"path": paths[0], "build_id": "", "vaddr": 0, "program": True}, {"path": paths[1], "build_id": ""},
                    {"path": paths[2], "build_id": ""}],
        "places": places, "folded": [[SPIN, 272, 1, p[3]] for p in places if p[0] == KERNEL],
        "stacks": {"samples": 0, "without": 0, "cuts": [],
                   "ends": [{"end": end, "samples": n, "without_frame": n} for end, n in (("whole", 0), ("no_table", 0), ("nowhere", unmatched))],
                   "frames": frames, "nodes": nodes}}


def main():
    kind = sys.argv[2] if len(sys.argv) > 2 else "small"
    others = {"large": large, "recursion": recursion, "namesakes": namesakes, "threads": threads, "units": units}
    p = profile(*(others[kind]() if kind in others else small(900 if kind == "other" else 300)), 3, 2)
    if kind == "groups":
        p["groups"] = [{"command": c, "pid": n, "tid": 0, "uid": 0, "start_ns": 0, "thread": None, "cgroup": None, "unit": None, "samples": 0}
                       for n, c in enumerate(("", "one", "two"))]
        p["places"] = [[*place, 1 + n % 2] for n, place in enumerate(p["places"])]
    if kind == "units":
        p["groups"] = [{"command": c, "pid": 0, "tid": 0, "uid": 0, "start_ns": 0, "thread": None, "cgroup": cgroup, "unit": unit, "samples": 0}
                       for c, cgroup, unit in (("", None, None), ("spin", CONTAINERS[0], None), ("spin", CONTAINERS[1], None),
                                               ("spin", "/system.slice/web.service", "web.service"))]
        p["sums"] = [[SPIN, 0, 0, 60, 1], [SPIN, 0, 0, 30, 2], [SPIN, 0, 0, 15, 3], [KERNEL, 0, 0, 4, 3]]
        p["folded"] = [[SPIN, 260, 1, 4]]
        p["stacks"]["groups"] = [[0, 1], [2, 2], [4, 3]]
    if kind == "threads":
        p["objects"].append({"path": "thread", "build_id": "", "interpreted": [[1, 0, 0, "one (11)", None, 0, ""], [2, 0, 0, "two (12)", None, 0, ""]]})
        p["groups"] = [{"command": "spin", "pid": 1, "tid": tid, "uid": 0, "start_ns": 0, "thread": name, "cgroup": None, "unit": None, "samples": 0}
                       for tid, name in ((0, None), (11, "one"), (12, "two"))]
        p["slice_ns"] = 10**8
        p["stacks"]["times"] = [[5, 60], [8, 40, 10, 20], [2, 3]]
    if kind == "slices":
        p["slice_ns"] = 10**8
        p["stacks"]["times"] = [[4, 7000, 13, 60], [6, 10, 7, 30, 9, 10, 11, 40], [2, 3, 7, 270, 8, 20, 12, 500]]
    with open(sys.argv[1], "w") as f:
        json.dump(p, f)


main()
