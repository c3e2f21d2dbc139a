# verdict.py - the night's verdicts on simulated numbers: how often they are red by chance, and what they notice
#
# From fixed seeds, so that each verdict is the same in each run.
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
import verdict  # noqa: E402

ROUNDS = 1000
LOOKS = 4000
EFFECT = 0.02


def bell(rng, mean, sigma):
    return [rng.gauss(mean, sigma) for _ in range(verdict.BATCHES)]


def bursts(rng, mean, sigma):
    """A busy machine's: one batch of ten is five deviations off, on either side."""
    return [mean + sigma * (rng.choice((-5, 5)) if rng.random() < 0.1 else rng.gauss(0, 1))
            for _ in range(verdict.BATCHES)]


def verdicts(draw, effect, sigma, seed):
    """Counts the verdicts on ROUNDS numbers that differ by @effect, each look's batches with a half of the deviation."""
    rng, count = random.Random(seed), dict.fromkeys((verdict.OK, verdict.RED, verdict.UNSURE), 0)
    for _ in range(ROUNDS):
        looks, said = [], verdict.MORE
        for i in range(3):
            looks.append(draw(rng, effect, sigma / 2**i))
            said, _ = verdict.equivalent(looks, 0, EFFECT)
            if said != verdict.MORE:
                break
        count[said] += 1
    return count


def beyond(draw, seed):
    """How many of a hundred single looks at a number at the limit are beyond it."""
    rng = random.Random(seed)
    return 100 * sum(verdict.look(draw(rng, EFFECT, EFFECT), 0, EFFECT)[0] == 1 for _ in range(LOOKS)) / LOOKS


def tell(name, held, what):
    print("ok" if held else "FAIL", name + ("" if held else f": {what}"))


def main():
    for name, draw, found in (("even", bell, 99), ("bursty", bursts, 90)):
        n = verdicts(draw, 0, EFFECT, 1)
        tell(f"{name} numbers that are equal are ok in 99 of 100 cases", n["ok"] >= 0.99 * ROUNDS and not n["FAIL"], n)
        n = verdicts(draw, EFFECT, EFFECT, 2)
        tell(f"{name} numbers at the limit are never red in {ROUNDS} cases", not n["FAIL"], n)
        for side, seed in ((1, 3), (-1, 4)):
            n = verdicts(draw, side * 2 * EFFECT, EFFECT / 2, seed)
            tell(f"{name} numbers of {2 * side} times the effect are red in {found} of 100 cases, and ok in none",
                 n["FAIL"] >= found / 100 * ROUNDS and not n["ok"], n)
        percent = beyond(draw, 5)
        tell(f"one look at {name} numbers at the limit is beyond it in at most 1 of 100 cases", percent <= 1, percent)
    percent = beyond(bell, 6)
    tell("one look at even numbers at the limit is beyond it in 0.3 to 0.7 of 100 cases", 0.3 <= percent <= 0.7, percent)
    n = verdicts(bell, 0, 20 * EFFECT, 7)
    tell("numbers of too few samples are not ok", n["ok"] < ROUNDS / 1000 and not n["FAIL"], n)
    few, bad = [None] + [0.0] * 19, [1.0] * 20
    tell("a batch with too few samples leaves no verdict", verdict.equivalent([few] * 3, 0, 1)[0] == verdict.UNSURE, "")
    tell("looks beyond on different sides leave no verdict",
         verdict.equivalent([bad, [-1.0] * 20, bad], 0, 0.5)[0] == verdict.UNSURE, "")
    tell("two looks beyond ask for a third", verdict.equivalent([bad, bad], 0, 0.5)[0] == verdict.MORE, "")
    tell("a control that fails leaves no verdict",
         verdict.controlled((verdict.RED, "so"), (verdict.RED, "")) == (verdict.UNSURE, "the control: so"), "")
    tell("a control that passes leaves the verdict",
         verdict.controlled((verdict.OK, ""), (verdict.RED, "so")) == (verdict.RED, "so"), "")
    for n, said in ((28, verdict.RED), (27, verdict.UNSURE), (4, verdict.UNSURE), (3, verdict.OK)):
        found, _ = verdict.pairs([2.0] * n + [1.0] * (31 - n), [1.0] * 31, 1.5)
        tell(f"{n} of 31 pairs beyond the limit are {said}", found == said, found)
    tell("thirty pairs leave no verdict", verdict.pairs([1.0] * 30, [1.0] * 30, 1.5)[0] == verdict.UNSURE, "")


if __name__ == "__main__":
    main()
