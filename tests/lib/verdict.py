#!/usr/bin/python3
# verdict.py - verdicts of the night on numbers that the scheduler chooses
#
# usage: verdict.py equivalent EXPECTED EFFECT LOOK...
#        verdict.py quiet SECONDS
#
# equivalent: the numbers in the files LOOK, one a line, differ from EXPECTED by less than EFFECT. Each LOOK is 20
#             batches of one run; "none" stands for a batch with too few samples. Prints "ok", "FAIL", "no verdict"
#             or, when another look decides, "more"; and why.
# quiet:      ends with 0 as soon as no other process wants a CPU for five seconds and the host takes none, with 1
#             when that has not come after SECONDS.
#
# A limit on a number that assumes a model (so many deviations of a binomial distribution) is red by chance as
# soon as the machine does what the model leaves out: time slices, bursts, a stolen CPU. Here the deviation is that
# of the batches themselves, whatever makes it, and a verdict needs evidence in either direction:
#
# - ok when the whole interval of the mean lies within EFFECT, red when it lies wholly beyond; else another look is
#   taken, with four times as many samples. Fewer samples make a wider interval, which is never ok.
# - Red needs three looks beyond EFFECT on the same side, each of fresh samples: by chance, where the true value is at
#   the limit, 3 * 10^-7 (0.005^3 for either side); if each look errs ten times as often as it should, 3 * 10^-4.
# - The third look is taken on a quiet machine. If it does not become quiet: no verdict.
import math
import statistics
import sys
import time

BATCHES = 20
T = 2.861  # of Student's distribution with 19 degrees of freedom: 0.5 % are beyond it on each side
LOOKS = 3  # of 1, 4 and 16 times as many samples
PAIRS = 31
RED_PAIRS = 28  # of 31: as likely as 28 heads of 31 throws, 2.3 * 10^-6, where the limit is the median

OK, RED, UNSURE, MORE = "ok", "FAIL", "no verdict", "more"


def interval(batches):
    n, mean = len(batches), statistics.fmean(batches)
    variance = sum((x - mean) ** 2 for x in batches) / (n - 1)
    return mean, T * math.sqrt(variance / n)


def look(batches, expected, effect):
    """Whether the interval lies within @effect of @expected (0), beyond it (-1, 1), or neither (None)."""
    if len(batches) != BATCHES or None in batches:
        return None, "too few samples in a batch"
    mean, half = interval(batches)
    text = f"{mean:.5g} [{mean - half:.5g}, {mean + half:.5g}], not {expected:g} within {effect:g}"
    low, high = mean - half - expected, mean + half - expected
    if -effect < low and high < effect:
        return 0, text.replace("not ", "")
    if low > effect or high < -effect:
        return (1 if low > effect else -1), text
    return None, text


def equivalent(looks, expected, effect):
    """The verdict on the looks so far, and why."""
    sides, texts = zip(*(look(batches, expected, effect) for batches in looks))
    if sides[-1] == 0:
        return OK, texts[-1]
    if len(looks) < LOOKS:
        return MORE, texts[-1]
    if sides[0] and len(set(sides)) == 1:
        return RED, "; ".join(texts)
    return UNSURE, "; ".join(texts)


def pairs(values, others, limit):
    """The verdict on times taken in turns (ABBA...): those of @values are less than @limit times @others."""
    beyond = sum(a > limit * b for a, b in zip(values, others, strict=True))
    median = statistics.median(a / max(b, sys.float_info.min) for a, b in zip(values, others))
    text = f"{beyond} of {len(values)} pairs beyond {limit:g} times, median {median:.3g} times"
    if len(values) != PAIRS:
        return UNSURE, f"{len(values)} pairs, not {PAIRS}"
    return (RED if beyond >= RED_PAIRS else OK if PAIRS - beyond >= RED_PAIRS else UNSURE), text


def controlled(control, verdict):
    """@verdict, if what is compared with passes the same test."""
    return verdict if control[0] == OK else (UNSURE, f"the control: {control[1]}")


def cpu_times():
    """The processes that want a CPU beside this one, and the clock ticks: all, and stolen."""
    with open("/proc/stat", encoding="utf-8") as file:
        fields = {line.split()[0]: [int(n) for n in line.split()[1:9]] for line in file if not line.startswith("intr")}
    return fields["procs_running"][0] - 1, sum(fields["cpu"]), fields["cpu"][7]


def quiet(patience, still=5.0):
    limit = time.monotonic() + patience
    while time.monotonic() < limit:
        began, running, n = time.monotonic(), 0, 0
        _, all_before, stolen_before = cpu_times()
        while time.monotonic() < began + still:
            running, n = running + cpu_times()[0], n + 1
            time.sleep(0.05)
        _, ticks, stolen = cpu_times()
        if running < n and (stolen - stolen_before) * 50 < ticks - all_before:
            return True
    return False


def read_look(path):
    with open(path, encoding="utf-8") as file:
        return [None if line.strip() == "none" else float(line) for line in file]


def main(what, *args):
    if what == "quiet":
        return not quiet(float(args[0]))
    print(*equivalent([read_look(path) for path in args[2:]], float(args[0]), float(args[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
