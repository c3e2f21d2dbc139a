#!/bin/bash
# functions-java.sh - methods of Java, counted in the kernel: interpreted, compiled and inlined ones
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl

command -v javac >/dev/null || { skip "methods of Java are counted" "no JDK is installed"; finish; }
javac -d "$dir" tests/programs/Functions.java || exit 1
daemon_start

# The options say which compiler works: none, the first, or both with inlining.
methods() { # NAME some|inlined JAVA-OPTION...
	local name=$1 inlined=$2

	shift 2
	"$ctl" record -q -g -F 499 -o "$dir/kept" -- java "$@" -cp "$dir" Functions
	"$ctl" report -f json -o "$dir/json" "$dir/kept"
	check "each sample in $name methods has their callers" python3 tests/lib/functions.py "$dir/json" "$inlined"
	check "the class is part of the name of $name methods" jq -e \
		'any(.functions[]; .object == "java" and .name == "Functions.inner" and .samples > 0)' "$dir/json"
	check "$name methods of native code have names, and stubs their own" jq -e \
		'any(.functions[]; .object == "java") and
		 all(.functions[]; .name != "native nmethod" and (.name | startswith("I2C.") | not))' "$dir/json"
}

methods interpreted some -Xint
methods "simply compiled" some -XX:TieredStopAtLevel=1 -XX:-Inline
methods compiled inlined -Xshare:auto
"$ctl" record -q -F 499 -f json -o "$dir/flat" -- java -cp "$dir" Functions
check "without a call graph inner() has samples" jq -e \
	'any(.functions[]; .object == "java" and .name == "Functions.inner" and .samples > 0)' "$dir/flat"
finish
