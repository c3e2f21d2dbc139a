#!/usr/bin/python3
# nightly.py - writes and reads tests/NIGHTLY, the record of the nights
#
# usage: nightly.py append FILE night|part FACTS FAILURES UNSURE SUITES
#        nightly.py open FILE TODAY
#        nightly.py age FILE TODAY
#
# append: adds an entry. FACTS is what its first line says after the kind: commit, machine, times and totals.
#         FAILURES has lines "SUITE: FAIL NAME: WHY", of guests "SUITE: GUEST VERSION FAIL PART: NAME: WHY"; UNSURE
#         "SUITE: skip NAME: WHY" or "SUITE: no verdict NAME: WHY"; SUITES is one of the suites that ran, one a line.
# open:   prints what has to be looked into: each red that no later line closes, and each test without a verdict in the
#         last three nights. Prints too what it cannot read.
# age:    prints how many commits and days ago the last whole night was.
#
# FILE has lines, of which those that begin with # and empty ones do not count:
#
#     night COMMIT FROM TO: MACHINE: TOTALS         a whole night; "part": a part of one, whose suites follow
#     covers SUITE...                               of a part
#     red SUITE: NAME: WHY                          of the entry above
#     no verdict SUITE: NAME: WHY
#     fixed SUITE: NAME by COMMIT                   closes the red
#     accepted SUITE: NAME: REASON, UNTIL DATE      closes it up to that day
import datetime
import re
import subprocess
import sys

NIGHTS = 3  # without a verdict in a row count as a red
WHY = 400  # characters that are kept of a reason

ENTRY = re.compile(r"(night|part) ([0-9a-f]{7,40}\+?) (\S+) \S+: (.*)")
RESULT = re.compile(r"(red|no verdict) ((\S+): .+?): (.*)")
FIXED = re.compile(r"fixed (\S+: .+) by ([0-9a-f]{7,40})")
ACCEPTED = re.compile(r"accepted (\S+: .+?): (.+), UNTIL (\d{4}-\d\d-\d\d)")
FOUND = re.compile(r"(\S+): (?:(?:(\S+) +)?(?:[0-9]\S* +)?FAIL|no verdict|skip) (.+?)(?:: (.*))?")


class Record:
    """What the lines of the file amount to."""

    def __init__(self):
        self.open = {}  # by SUITE: NAME, why and where it was red
        self.nights = []  # of each whole night, its first line's match and the tests without a verdict
        self.unsure = {}  # by SUITE: NAME, the number of nights in a row without a verdict, and the last reason
        self.entry, self.covers, self.here = None, set(), set()
        self.unread = []

    def close_entry(self):
        """A test that has had a verdict since is no longer without one."""
        if self.entry:
            for key in [k for k in self.unsure if k not in self.here]:
                if self.entry[1] == "night" or key.split(": ")[0] in self.covers:
                    del self.unsure[key]
        self.covers, self.here = set(), set()

    def begin(self, match):
        self.close_entry()
        self.entry = match
        if match[1] == "night":
            self.nights.append(match)

    def result(self, kind, key, why):
        if kind == "red":
            self.open[key] = f"{why} (at {self.entry[2]}, {self.entry[3]})"
            return
        n, _ = self.unsure.get(key, (0, ""))
        self.unsure[key] = (n + (self.entry[1] == "night" and key not in self.here), why)
        self.here.add(key)

    def close(self, key):
        self.open.pop(key, None)
        self.unsure.pop(key, None)

    def line(self, text, today):
        if match := ENTRY.fullmatch(text):
            self.begin(match)
        elif text.startswith("covers ") and self.entry and self.entry[1] == "part":
            self.covers = set(text.split()[1:])
        elif (match := RESULT.fullmatch(text)) and self.entry:
            self.result(match[1], match[2], match[4])
        elif match := FIXED.fullmatch(text):
            self.close(match[1])
        elif match := ACCEPTED.fullmatch(text):
            if today <= match[3]:
                self.close(match[1])
            elif match[1] in self.open:
                self.open[match[1]] += f"; it was accepted until {match[3]}"
        else:
            self.unread.append(text)


def read(path, today):
    record = Record()
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                record.line(line.rstrip("\n"), today)
    record.close_entry()
    return record


def open_reds(path, today):
    record = read(path, today)
    for key, why in record.open.items():
        print(f"{key}: {why}")
    for key, (n, why) in record.unsure.items():
        if n >= NIGHTS:
            print(f"{key}: no verdict in {n} nights in a row, the last: {why}")
    for text in record.unread:
        print(f"tests/NIGHTLY: no such line: {text}")


def commits_since(commit):
    done = subprocess.run(["git", "rev-list", "--count", f"{commit.rstrip('+')}..HEAD"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return f"{done.stdout.strip()} commits" if done.returncode == 0 else "an unknown number of commits"


def age(path, today):
    record = read(path, today)
    if not record.nights:
        print("nightly: no whole night is recorded: sudo make nightly")
        return
    night = record.nights[-1]
    days = (datetime.date.fromisoformat(today) - datetime.date.fromisoformat(night[3][:10])).days
    print(f"nightly: the last whole night was {commits_since(night[2])} and {days} days ago "
          f"({night[2]}, {night[3][:10]}): {night[4].rpartition(': ')[2]}")


def lines_of(path, word):
    with open(path, encoding="utf-8", errors="replace") as file:
        for text in file:
            if match := FOUND.fullmatch(text.rstrip("\n")):
                suite, guest, name, why = match.groups()
                if guest:  # a colon in the name would end it in the record
                    test, _, why = (why or "-").partition(": ")
                    name = f"{guest} {name} / {test}"
                yield f"{word} {suite}: {name}: {(why or '-')[:WHY]}"


def append(path, kind, facts, failures, unsure, suites):
    lines = [f"{kind} {facts}"]
    if kind == "part":
        with open(suites, encoding="utf-8") as file:
            ran = file.read().split()
        if not ran:  # it was ended before its first suite had
            return
        lines.append("covers " + " ".join(ran))
    lines += [*lines_of(failures, "red"), *lines_of(unsure, "no verdict")]
    with open(path, "a", encoding="utf-8") as file:
        file.write("\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    {"append": append, "open": open_reds, "age": age}[sys.argv[1]](*sys.argv[2:])
