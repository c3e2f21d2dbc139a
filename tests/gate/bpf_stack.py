#!/usr/bin/python3
# bpf_stack.py - prints chains of calls in a BPF object that need more stack than Linux 6.1 allows
#
# usage: tests/gate/bpf_stack.py OBJECT [all]    prints nothing and returns 0 when there are none
#
# The verifier adds up the stack frames of a chain of calls, each rounded up to 32 bytes, and refuses
# more than 512. Since Linux 6.13 functions of tracing programs may have stacks of their own: such a
# kernel loads what an older one refuses. With "all" the longest chain of every function is printed.
import struct
import sys

MOST = 512
SHT_SYMTAB, SHT_REL = 2, 9
STT_FUNC, STT_SECTION = 2, 3
R10 = 10
CALL, LOAD_ADDRESS, MOVE, ADD = 0x85, 0x18, 0xBF, 0x07


def sections(elf):
    """(name, type, link, info, bytes) of each."""
    (at,), (size, n, names) = struct.unpack_from("<Q", elf, 40), struct.unpack_from("<HHH", elf, 58)
    heads = [struct.unpack_from("<IIQQQQIIQQ", elf, at + i * size) for i in range(n)]
    text = elf[heads[names][4]:][:heads[names][5]]
    return [(string(text, h[0]), h[1], h[6], h[7], elf[h[4]:h[4] + h[5]]) for h in heads]


def string(text, at):
    return text[at:text.index(b"\0", at)].decode()


def symbols(parts):
    """(name, type, section, value, size) of each."""
    _, _, link, _, table = next(p for p in parts if p[1] == SHT_SYMTAB)
    return [(string(parts[link][4], s[0]), s[1] & 15, s[3], s[4], s[5]) for s in struct.iter_unpack("<IBBHQQ", table)]


class Function:
    def __init__(self, code, section, start, relocations, find):
        self.frame, self.callees = 0, set()
        on_stack = set()  # registers that point into the frame
        for at in range(0, len(code), 8):
            op, registers, offset, imm = struct.unpack_from("<BBhi", code, at)
            to, source, kind = registers & 15, registers >> 4, op & 7
            if (kind == 1 and source == R10) or (kind in (2, 3) and to == R10):
                self.frame = max(self.frame, -offset)
            elif op == ADD and to in on_stack:
                self.frame = max(self.frame, -imm)
            elif op == CALL and source == 1 or op == LOAD_ADDRESS and at in relocations:
                self.callees.add(find(relocations.get(at), imm, op, (section, start + at + 8)))
            if op == MOVE and source == R10:
                on_stack.add(to)
            elif kind in (0, 1, 4, 7) and to in on_stack:
                on_stack.remove(to)
        self.callees -= {None}


def functions(elf):
    parts, found = sections(elf), {}
    names = symbols(parts)
    at = {(s[2], s[3]): s[0] for s in names if s[1] == STT_FUNC}

    def find(symbol, imm, op, behind):
        """The function that is called, or whose address is taken; None: the kernel's, or a variable."""
        _, kind, section, address, _ = symbol or ("", STT_SECTION, *behind, 0)
        if kind == STT_SECTION:  # a call counts instructions, from the one behind it
            address += (imm + (symbol is not None)) * 8 if op == CALL else imm
        return at.get((section, address))

    for name, kind, section, value, size in names:
        if kind != STT_FUNC or not section:
            continue
        table = [p[4] for p in parts if p[1] == SHT_REL and p[3] == section]
        relocations = {r[0] - value: names[r[1] >> 32] for t in table for r in struct.iter_unpack("<QQ", t)}
        found[name] = Function(parts[section][4][value:value + size], section, value, relocations, find)
    return found


def main():
    with open(sys.argv[1], "rb") as f:
        found, chains = functions(f.read()), {}

    def chain(name):
        """The bytes of the longest chain from @name on, and its functions."""
        if name not in chains:
            f = found[name]
            below = max((chain(n) for n in f.callees), default=(0, ()))
            chains[name] = (below[0] + max(-(-f.frame // 32), 1) * 32, (f"{name} {f.frame}", *below[1]))
        return chains[name]

    for total, names in sorted((chain(name) for name in found), reverse=True):
        if total > MOST or len(sys.argv) > 2:
            print(f"{total} bytes: {', '.join(names)}")
    return any(total > MOST for total, _ in chains.values())


sys.exit(main())
