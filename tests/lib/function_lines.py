# function_lines.py - each line of a program's functions is one that names the function in its comment
#
# usage: function_lines.py REPORT SOURCE OBJECT FUNCTION...
#
# REPORT is of 'profilctl report -a --by line'. The last word of a line of SOURCE is the function that
# executes it. While Perl compiles the program, <main> is in the line that is compiled: in any. FUNCTIONs must
# have samples. Prints the faults, and returns 0 when there are none.
import os
import re
import sys

report, source, language, wanted = sys.argv[1], sys.argv[2], sys.argv[3], set(sys.argv[4:])
lines = open(source).readlines()
names = [line.split()[-1] if line.split() else "" for line in lines]
base = os.path.basename(source)
faults = []


def is_own(function, line):
    return 0 < line <= len(names) and function in (names[line - 1], "<main>")


for row in open(report):
    columns = re.split(r"\s{2,}", row.strip())
    if columns[-1] != language:
        continue
    place, _, function = columns[-2].partition(" ")
    function = re.sub(r" \(.*", "", function)
    file, _, line = place.rpartition(":")
    wanted.discard(function)
    if file == base and not is_own(function, int(line)):
        faults.append(f"{function} is said to be in line {line}: {names[int(line) - 1:int(line)]}")
faults += [f"no sample is in {function}" for function in sorted(wanted)]
print("\n".join(faults[:5]))
sys.exit(bool(faults))
