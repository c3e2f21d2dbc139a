#!/bin/bash
# functions-perl.sh - subs of Perl, counted in the kernel: names, files, lines, callers
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
perl=/usr/bin/perl
program=$PWD/tests/programs/functions.pl

# shellcheck disable=SC2016 # Perl's variables
if ! test -x "$perl" || ! "$perl" -MConfig -e 'exit !($] >= 5.036 && $] < 5.043 && $Config{usethreads})'; then
	lacks "subs of Perl are counted" perl
	finish
fi
daemon_start
check "record -g records a program in Perl" "$ctl" record -q -g -F 499 -o "$dir/kept" -- "$perl" "$program"
check "report writes JSON of subs of Perl" "$ctl" report -f json -o "$dir/json" "$dir/kept"
check "each sample in the program's subs has their callers" python3 tests/lib/functions.py "$dir/json" whole
"$ctl" report -a --by line "$dir/kept" >"$dir/lines"
check "each line of a sub is one of its own" python3 tests/lib/function_lines.py "$dir/lines" "$program" perl \
	main::inner main::small
"$ctl" record -q -F 499 -f json -o "$dir/flat" -- "$perl" "$program"
check "without a call graph inner() has samples" jq -e \
	'any(.functions[]; .object == "perl" and .name == "main::inner" and .samples > 0)' "$dir/flat"
"$ctl" record -q -g -F 499 --native -f json -o "$dir/native" -- "$perl" "$program"
check "with --native the interpreter's own functions have the samples" jq -e \
	'all(.functions[]; .object != "perl" or .samples == 0)' "$dir/native"
finish
