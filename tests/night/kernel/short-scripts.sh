#!/bin/bash
# short-scripts.sh - functions of 200 scripts that each run for 30 ms, and of a pool of four workers
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl
python=/usr/bin/python3
scripts=200

if ! test -x "$python"; then
	lacks "functions of short scripts are counted" python3
	finish
fi
for ((i = 1; i <= scripts; i++)); do
	cat >"$dir/script-$i.py" <<-END
		import time
		def short_$i(end):
		    while time.process_time() < end: pass
		short_$i(time.process_time() + 0.03)
	END
done
# What a recording makes of a file it has not seen before takes longer than such a script runs.
echo 'for i in range(5000000): pass' >"$dir/first.py"
cat >"$dir/all" <<-END
	for f in "$dir"/script-*.py; do "$python" "\$f"; done
END
cat >"$dir/pool.py" <<-END
	import multiprocessing, os, time
	def work(_):
	    end = time.process_time() + 0.2
	    while time.process_time() < end: pass
	    return os.getpid()
	with multiprocessing.get_context("fork").Pool(4) as pool:
	    print(len(set(pool.map(work, range(16), 1))))
END

daemon_start
"$ctl" record -q -g -o "$dir/first" -- "$python" "$dir/first.py"
check "record -g records $scripts scripts of 30 ms" "$ctl" record -q -g -F 997 -o "$dir/scripts" -- sh "$dir/all"
"$ctl" report -f folded "$dir/scripts" >"$dir/folded"
prints "each of the $scripts functions has its name and samples" "$scripts" \
	sh -c "grep -oE ';short_[0-9]+' '$dir/folded' | sort -u | wc -l"
check "the functions are written as JSON" "$ctl" report -f json -o "$dir/json" "$dir/scripts"
prints "no function of Python is without a name" 0 jq '[.functions[] |
	select(.object == "python" and (.named | not))] | length' "$dir/json"

prints "four workers of a pool are recorded" 4 "$ctl" record -q -g -F 997 -o "$dir/pool" -- "$python" "$dir/pool.py"
"$ctl" report -f folded "$dir/pool" | grep -E ';work( |;)' | grep -v '\[cut' >"$dir/folded"
check "the workers' function has samples" test -s "$dir/folded"
prints "what calls it is one path for all four" 1 sh -c "sed -E 's/;work( .*|;.*)//' '$dir/folded' | sort -u | wc -l"
finish
