# gmon.py - checks every record of a gmon.out and prints the sum of its ticks
import struct
import sys

data = open(sys.argv[1], "rb").read()
assert data[:4] == b"gmon" and struct.unpack_from("=i", data, 4) == (1,), "no gmon.out"
at, ticks = 20, 0
while at < len(data):
    tag, at = data[at], at + 1
    if tag == 0:
        low, high, bins, rate = struct.unpack_from("=QQii", data, at)
        assert 0 <= low < high and rate > 0, "a histogram of nothing"
        at += 40
        ticks += sum(struct.unpack_from(f"={bins}H", data, at))
        at += 2 * bins
    else:
        assert tag == 1, f"no tag {tag}"
        start, function, calls = struct.unpack_from("=QQI", data, at)
        assert low <= start < high and low <= function < high and calls, "a call of nothing"
        at += 20
assert at == len(data), "the last record is not whole"
print(ticks)
