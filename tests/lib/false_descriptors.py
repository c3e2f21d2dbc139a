# false_descriptors.py - changes the descriptors of interpreters of a recording at random: PID
#
# Takes the map of unwind rules that profilctl PID has mapped, as PID's user could, and changes one word of a descriptor
# about each 100 microseconds until PID has ended; the true words come back at times, or no walk would get far.
# Prints how many words it changed.
import os
import random
import struct
import sys
import time

PAGE, DESCRIPTORS_PAGE, DESCRIPTOR = 4096, 4, 128  # core/unwind_maps.h, core/interpreter_maps.h
KIND, RUNTIME, OFFSETS = 0, 8, 48
KINDS = 8


def unwind_map(pid):
    """Where the process has mapped the rules, the only map of BPF that it may write; None: nowhere yet."""
    for line in open(f"/proc/{pid}/maps"):
        if line.rstrip().endswith("bpf-map") and " rw-s " in line:
            return int(line.split("-")[0], 16)
    return None


def running(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def changed(seed, true):
    """A word to be written, and its offset in the page."""
    number = seed.choice([i for i in range(PAGE // DESCRIPTOR) if true[i * DESCRIPTOR + KIND]])
    at = number * DESCRIPTOR
    how = seed.randrange(16)
    if how < 6:
        at += OFFSETS + seed.randrange((DESCRIPTOR - OFFSETS) // 2) * 2
        return at, struct.pack("=H", seed.choice([0, 8, 16, 0x7FF8, 0xFFFF, seed.randrange(1 << 16), seed.randrange(256)]))
    if how == 6:
        return at + KIND, bytes([seed.randrange(1, KINDS + 1)])
    if how == 7:
        runtime = struct.unpack_from("=Q", true, at + RUNTIME)[0]
        return at + RUNTIME, struct.pack("=Q", (runtime + 8 * seed.randrange(-512, 512)) % (1 << 64))
    if how < 12:
        return at, true[at:at + DESCRIPTOR]
    at += OFFSETS + seed.randrange((DESCRIPTOR - OFFSETS) // 2) * 2
    return at, true[at:at + 2]


def main():
    pid, seed = int(sys.argv[1]), random.Random(39)
    found, true, n = None, b"", 0
    while not found and running(pid):
        found = unwind_map(pid)
        time.sleep(0.01)
    if not found:
        sys.exit(f"process {pid} has no map of unwind rules")
    page = found + DESCRIPTORS_PAGE * PAGE
    memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)
    try:
        while not any(true):
            time.sleep(0.01)
            true = os.pread(memory, PAGE, page)
        while running(pid):
            at, word = changed(seed, true)
            os.pwrite(memory, word, page + at)
            n += 1
            time.sleep(0.0001)
    except OSError:
        pass  # the process has ended
    print(n)


main()
