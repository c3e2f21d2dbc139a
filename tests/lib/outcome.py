# outcome.py - verdicts of a suite that is a Python program, and its totals, in the words of lib.sh
passed = failed = skipped = 0


def ok(fact, held, why=""):
    global passed, failed
    passed, failed = passed + bool(held), failed + (not held)
    print(f"ok {fact}" if held else f"FAIL {fact}: {why}", flush=True)


def skip(fact, why):
    global skipped
    skipped += 1
    print(f"skip {fact}: {why}", flush=True)


def finish():
    """Returns the exit status."""
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0 or not passed + skipped
