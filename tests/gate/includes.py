#!/usr/bin/python3
# includes.py - prints includes that point up between layers, and include cycles between files
#
# usage: tests/gate/includes.py    in the top directory; prints nothing and returns 0 when there are none
#
# A folder is a layer. A file includes files of its own folder and of the folders that its layer names; every file may
# include src/core and src/base. A .c file and its header count as one in a cycle. The layers themselves may not form a cycle.
import re
import sys
from pathlib import Path

CTL = "src/profilctl"
D = "src/profild"
HTTP = "src/profil-http"
LIBRARY = ["base", "symbols/proc", "profile", "symbols/elf", "symbols/interpreters", "symbols", "analysis", "table", "formats", "formats/page"]
LIBRARY_FOLDERS = [f"src/{x}" for x in LIBRARY]

# What the daemon's layers share: its options, its state, its event loop, the BPF object, what outlives it.
GROUND = f"{D}, ground"
GROUND_FILES = [f"{D}/{x}" for x in ("config.c", "config.h", "daemon.h", "store.c", "store.h", "skeleton.h")]

# Layer: the layers, and single files, below it.
LAYERS = {
    "src/core": [],
    "bpf": ["src/core/arch.h", "src/core/bin.h", "src/core/fold.h", "src/core/observe_maps.h", "src/core/unwind_maps.h", "src/core/walk_budget.h", "src/core/interpreter_maps.h", "src/core/java_bases.h", "src/core/observers.h", "src/core/proto.h", "src/core/shared_maps.h"],
    "include": [],
    "src/libprofil": ["include"],
    "src/libprofil/dialects": ["src/libprofil", "include"],
    "src/libprofil/gprof": ["src/libprofil", "include"],
    f"{D}/quota": [],
    GROUND: [f"{D}/quota", "bpf/profil.skel.h"],
    f"{D}/worker": [f"{D}/quota"],
    f"{D}/clock": [GROUND, f"{D}/quota"],
    f"{D}/profile": [GROUND, "bpf/count.bpf.h"] + [f"{D}/{x}" for x in ("quota", "worker", "clock")],
    f"{D}/observe": [GROUND] + [f"{D}/{x}" for x in ("quota", "clock")],
    f"{D}/bpf/counters": [GROUND] + [f"{D}/{x}" for x in ("quota", "worker", "clock", "profile", "observe")],
    f"{D}/bpf": [f"{D}/bpf/counters", GROUND] + [f"{D}/{x}" for x in ("quota", "worker", "clock", "profile", "observe")],
    f"{D}/ipc": [GROUND] + [f"{D}/{x}" for x in ("quota", "worker", "clock", "profile", "observe", "bpf")],
    D: [GROUND] + [f"{D}/{x}" for x in ("quota", "worker", "clock", "profile", "observe", "bpf", "ipc")],
    # The library below both programs: each layer may include the ones before it.
    **{f"src/{x}": [f"src/{y}" for y in LIBRARY[:i]] for i, x in enumerate(LIBRARY)},
    f"{CTL}/util": LIBRARY_FOLDERS,
    f"{CTL}/options": [f"{CTL}/util"] + LIBRARY_FOLDERS,
    f"{CTL}/output": [f"{CTL}/{x}" for x in ("options", "util")] + LIBRARY_FOLDERS,
    f"{CTL}/input": [f"{CTL}/util"] + LIBRARY_FOLDERS,
    f"{CTL}/collect": [f"{CTL}/{x}" for x in ("output", "options", "util")] + LIBRARY_FOLDERS,
    f"{CTL}/spool": [f"{CTL}/{x}" for x in ("collect", "input", "output", "options", "util")] + LIBRARY_FOLDERS,
    f"{CTL}/push": [f"{CTL}/{x}" for x in ("spool", "collect", "input", "output", "options", "util")] + LIBRARY_FOLDERS,
    f"{CTL}/verbs": [f"{CTL}/{x}" for x in ("push", "spool", "collect", "input", "output", "options", "util")] + LIBRARY_FOLDERS,
    f"{CTL}/top": [f"{CTL}/{x}" for x in ("verbs", "collect", "output", "options", "util")] + LIBRARY_FOLDERS,
    CTL: [f"{CTL}/{x}" for x in ("top", "verbs", "options", "util")] + LIBRARY_FOLDERS,
    # A client of profild like profilctl, beside it on the same library.
    f"{HTTP}/machine": LIBRARY_FOLDERS,
    f"{HTTP}/answers": [f"{HTTP}/machine"] + LIBRARY_FOLDERS,
    HTTP: [f"{HTTP}/answers", f"{HTTP}/machine"] + LIBRARY_FOLDERS,
}

# Known includes that point up. The list only shrinks.
KNOWN = set()

# Known cycles, each by one of its files.
KNOWN_CIRCLES = set()

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)


def resolve(file, name, quoted):
    """The file in the tree that an include means, or None for the system's."""
    for folder in ([file.parent] if quoted else []) + [Path("src"), Path("include"), Path(".")]:
        if (folder / name).is_file():
            return Path(*(folder / name).parts) if ".." not in name else (folder / name).resolve().relative_to(Path.cwd())
    return Path(name) if name.endswith(".skel.h") else None


def includes(file):
    for mark, name in INCLUDE.findall(file.read_text()):
        what = resolve(file, name, mark == '"')
        if what and (mark == '"' or name.startswith("profil")):
            yield what


def layer(file):
    """The innermost layer that holds a file."""
    if str(file) in GROUND_FILES:
        return GROUND
    for place in [file, *file.parents]:
        if str(place) in LAYERS:
            return str(place)
    return None


def may_include(file, what):
    own = layer(file)
    if own is None or layer(what) == own or (layer(what) in ("src/core", "src/base") and own not in ("bpf", "include", "src/base")):
        return True
    return any(place in LAYERS[own] for place in (str(what), layer(what)))


def circles(edges):
    """The strongly connected sets of more than one file (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in edges.get(v, ()):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            at = stack.index(v)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for v in sorted(edges):
        if v not in index:
            visit(v)
    return found


def main():
    upward, edges = set(), {}
    for top in ("src", "bpf", "include"):
        for file in sorted(Path(top).rglob("*.[ch]")):
            for what in includes(file):
                if not may_include(file, what):
                    upward.add((str(file), str(what)))
                ours, theirs = str(file.with_suffix("")), str(what.with_suffix(""))
                if ours != theirs:
                    edges.setdefault(ours, set()).add(theirs)
    found = [f"{file} includes {what}" for file, what in sorted(upward - KNOWN)]
    found += ["cycle: " + " ".join(c) for c in circles(edges) if not KNOWN_CIRCLES & set(c)]
    layers = {name: [b for b in below if b in LAYERS] for name, below in LAYERS.items()}
    found += ["cycle of layers: " + " ".join(c) for c in circles(layers)]
    for gone in sorted(KNOWN - upward):
        print(f"tests/gate/includes.py: no longer needed in KNOWN: {gone}", file=sys.stderr)
    for line in found:
        print(line)
    return bool(found)


sys.exit(main())
