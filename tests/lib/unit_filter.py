#!/usr/bin/python3
# unit_filter.py - runs a command with the system calls that a unit leaves it, as systemd does
#
# usage: unit_filter.py UNIT COMMAND...
#
# Of the unit it takes SystemCallFilter=, SystemCallErrorNumber=, RestrictAddressFamilies=,
# MemoryDenyWriteExecute= and RestrictNamespaces=. systemd-analyze says what is in a set of calls. The caller
# must have no_new_privs, or CAP_SYS_ADMIN. Ends with 77 if there is no libseccomp or systemd-analyze.
import ctypes
import errno
import os
import re
import socket
import subprocess
import sys

ALLOW = 0x7FFF0000
MASKED_EQUAL = 7  # of enum scmp_compare
PROT_WRITE, PROT_EXEC, SHM_EXEC = 2, 4, 0o100000
NAMESPACES = [0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]


class Compare(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int),
                ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def refuse(number):
    return 0x50000 | number


class Filter:
    """A filter of its own for each option, as systemd's: the strictest of them decides."""

    def __init__(self, lib, default):
        self.lib, self.context = lib, lib.seccomp_init(default)
        if not self.context:
            sys.exit("unit_filter.py: seccomp_init failed")

    def rule(self, action, call, *compares):
        number = self.lib.seccomp_syscall_resolve_name(call.encode())
        if number < 0:
            return  # of another architecture
        array = (Compare * max(1, len(compares)))(*compares)
        err = self.lib.seccomp_rule_add_array(self.context, action, number, len(compares), array)
        if err:
            sys.exit(f"unit_filter.py: a rule for {call}: {os.strerror(-err)}")

    def load(self):
        err = self.lib.seccomp_load(self.context)
        if err:
            sys.exit(f"unit_filter.py: seccomp_load: {os.strerror(-err)}")


def read_sets():
    """The items of each set."""
    said = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager"], check=True,
                          capture_output=True, text=True).stdout
    sets, items = {}, []
    for line in said.splitlines():
        if line.startswith("@"):
            items = sets.setdefault(line.strip(), [])
        elif line.strip() and "#" not in line:
            items.append(line.strip())
    return sets


def calls_of(name, sets):
    """The system calls that an item of SystemCallFilter= stands for."""
    if not name.startswith("@"):
        return {name}
    return set().union(*(calls_of(item, sets) for item in sets[name]))


def allowed(lines):
    """systemd lets the first line decide whether the list is of what is allowed; ours is."""
    sets = read_sets()
    calls = calls_of("@default", sets)
    for line in lines:
        named = set().union(*(calls_of(name, sets) for name in line.lstrip("~").split()))
        calls = calls - named if line.startswith("~") else calls | named
    return calls


def main():
    with open(sys.argv[1]) as f:
        settings = re.findall(r"^(\w+)=(.*)$", f.read(), re.M)
    of = {key: [value for k, value in settings if k == key] for key, _ in settings}
    try:
        lib = ctypes.CDLL("libseccomp.so.2")
        calls = allowed(of["SystemCallFilter"])
    except (OSError, subprocess.CalledProcessError) as e:
        print(f"unit_filter.py: {e}", file=sys.stderr)
        sys.exit(77)
    lib.seccomp_init.restype = ctypes.c_void_p
    lib.seccomp_init.argtypes = [ctypes.c_uint32]
    lib.seccomp_load.argtypes = [ctypes.c_void_p]
    lib.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int,
                                           ctypes.c_uint, ctypes.POINTER(Compare)]
    filters = []
    if "RestrictAddressFamilies" in of:
        families = Filter(lib, ALLOW)
        known = [getattr(socket, name) for line in of["RestrictAddressFamilies"] for name in line.split()]
        for family in set(range(64)) - set(known):
            families.rule(refuse(errno.EAFNOSUPPORT), "socket", Compare(0, MASKED_EQUAL, 0xFFFFFFFF, family))
        filters.append(families)
    if "MemoryDenyWriteExecute" in of:
        memory = Filter(lib, ALLOW)
        both = PROT_WRITE | PROT_EXEC
        memory.rule(refuse(errno.EPERM), "mmap", Compare(2, MASKED_EQUAL, both, both))
        for call in ("mprotect", "pkey_mprotect"):
            memory.rule(refuse(errno.EPERM), call, Compare(2, MASKED_EQUAL, PROT_EXEC, PROT_EXEC))
        memory.rule(refuse(errno.EPERM), "shmat", Compare(2, MASKED_EQUAL, SHM_EXEC, SHM_EXEC))
        filters.append(memory)
    if "RestrictNamespaces" in of:
        spaces = Filter(lib, ALLOW)
        spaces.rule(refuse(errno.ENOSYS), "clone3")
        spaces.rule(refuse(errno.EPERM), "setns")
        for flag in NAMESPACES:
            for call in ("clone", "unshare"):
                spaces.rule(refuse(errno.EPERM), call, Compare(0, MASKED_EQUAL, flag, flag))
        filters.append(spaces)
    only = Filter(lib, refuse(getattr(errno, of.get("SystemCallErrorNumber", ["EPERM"])[-1])))
    for call in calls:
        only.rule(ALLOW, call)
    filters.append(only)  # the last, as the others are loaded by calls that it may not have
    for f in filters:
        f.load()
    os.execvp(sys.argv[2], sys.argv[2:])


main()
