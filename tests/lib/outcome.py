# outcome.py - verdicts of a suite that is a Python program, and its totals, in the words of lib.sh
passed = failed = skipped = unsure = 0


def ok(fact, held, why=""):
    global passed, failed
    passed, failed = passed + bool(held), failed + (not held)
    print(f"ok {fact}" if held else f"FAIL {fact}: {why}", flush=True)


def skip(fact, why):
    global skipped
    skipped += 1
    print(f"skip {fact}: {why}", flush=True)


def no_verdict(fact, why):
    global unsure
    unsure += 1
    print(f"no verdict {fact}: {why}", flush=True)


def finish():
    """Returns the exit status."""
    print(f"{passed} passed, {failed} failed, {skipped} skipped"
          + (f", {unsure} without a verdict" if unsure else ""))
    return failed > 0 or not passed + skipped + unsure
