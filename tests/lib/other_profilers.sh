# shellcheck shell=bash
# other_profilers.sh - what the comparisons with the profilers of languages share
# shellcheck disable=SC2154 # what lib.sh sets

ctl=$BUILD/profilctl

# Records COMMAND, which writes $dir/other by its own profiler, and compares.
same() { # KIND LANGUAGE WHAT COMMAND...
	local name="$3: the functions are those of $1"

	rm -f "$dir/other" "$dir/json"
	"$ctl" record -q -g -F 499 -f json -o "$dir/json" -- "${@:4}" >"$dir/out" 2>&1 # ends with the command's status
	if test -s "$dir/other"; then
		check "$name" python3 tests/lib/other_profilers.py "$1" "$dir/other" "$2" "$dir/json"
	else
		lacks "$name" "$1 (it said: $(tail -n 1 "$dir/out"))"
	fi
}

# The extension of Ruby that counts its methods.
ruby_sampler() {
	"${CC:-gcc}" -O2 -shared -fPIC -o "$dir/sampler.so" tests/programs/ruby_sampler.c && echo "$dir/sampler.so"
}
