#!/bin/bash
# functions.sh - functions of Python, counted in the kernel: names, files, lines, callers
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
python=/usr/bin/python3
program=$dir/program.py

cat >"$program" <<'END'
import time

def inner(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total

def recursive(depth):
    return recursive(depth - 1) + 1 if depth else inner(20000)

class Worker:
    def method(self):
        return recursive(5)

def outer():
    end = time.process_time() + 1
    while time.process_time() < end:
        Worker().method()

outer()
END

if ! test -x "$python" || ! "$python" -c 'import sys; sys.exit(not (3, 8) <= sys.version_info < (3, 16))'; then
	lacks "functions of Python are counted" python3
	finish
fi
daemon_start
check "record -g records a program in Python" "$ctl" record -q -g -F 499 -o "$dir/kept" -- "$python" "$program"
"$ctl" report "$dir/kept" >"$dir/report"
check "a known version of Python is not called unknown" sh -c "! grep -q 'interpreter of a version' $dir/report"
check "report writes JSON of functions of Python" "$ctl" report -f json -o "$dir/json" "$dir/kept"
check "each sample in the program's functions has their callers" python3 tests/lib/functions.py "$dir/json" whole
check "a function of Python is a function of the object python" jq -e \
	'[.functions[] | select(.object == "python" and .name == "inner")] | length == 1 and .[0].named' "$dir/json"
"$ctl" report -a --by line "$dir/kept" >"$dir/lines"
check "samples of inner() are in its lines" grep -qE 'program\.py:[567]\b' "$dir/lines"
"$ctl" record -q -F 499 --native -f json -o "$dir/native" -- "$python" "$program"
check "with --native the interpreter's own functions have the samples" jq -e \
	'any(.functions[]; .samples > 0 and (.object | test("python3|libpython"))) and all(.functions[]; .object != "python" or .samples == 0)' \
	"$dir/native"
"$ctl" record -q -F 499 -f json -o "$dir/flat" -- "$python" "$program"
check "without a call graph inner() has samples" jq -e 'any(.functions[]; .object == "python" and .name == "inner" and .samples > 0)' "$dir/flat"
sed 's/0x030c01f0/0x036301f0/' tests/programs/false_python.c | ${CC:-gcc} -x c -O1 -rdynamic -pthread -o "$dir/python3.99" - || exit 1
FALSE_NAME=inner "$ctl" record -q -g -F 499 -o "$dir/newer" -- "$dir/python3.99" true
"$ctl" report "$dir/newer" >"$dir/report"
check "report says that the functions of a newer Python are not known" grep -q "python3.99, an interpreter of a version" "$dir/report"
finish
