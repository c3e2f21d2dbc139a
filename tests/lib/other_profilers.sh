# shellcheck shell=bash
# other_profilers.sh - what the comparisons with the profilers of languages share
# shellcheck disable=SC2154 # what lib.sh sets

ctl=$BUILD/profilctl

# The other profiler has written $dir/other; records COMMAND and compares.
same() { # KIND LANGUAGE WHAT COMMAND...
	if ! test -s "$dir/other"; then
		lacks "$3 has the functions that $1 finds" "$1 (it said: $(tail -n 1 "$dir/out"))"
		return
	fi
	"$ctl" record -q -g -F 499 -f json -o "$dir/json" -- "${@:4}" >"$dir/out" 2>&1 # ends with the command's status
	check "$3 has the functions that $1 finds" python3 tests/lib/other_profilers.py "$1" "$dir/other" "$2" "$dir/json"
	rm -f "$dir/other" "$dir/json"
}
