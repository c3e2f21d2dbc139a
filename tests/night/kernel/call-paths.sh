#!/bin/bash
# call-paths.sh - stacks through signals, faults, loaded libraries and generated code; of static programs, forks, execs and selections; where stacks are cut
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
# shellcheck source=tests/lib/call_paths.sh
. tests/lib/call_paths.sh

ctl=$(realpath "$BUILD/profilctl")
paths=$dir/paths

# Frame pointers would hide wrong rules.
build() { # OUTPUT SOURCE OPTION...
	check "$2 is built" "${CC:-gcc}" -O2 -fno-optimize-sibling-calls -fomit-frame-pointer -o "$dir/$1" \
		"tests/programs/$2" "${@:3}"
}

tree_names() {
	"$ctl" report --tree "$dir/profile" >"$dir/tree"
	grep -q ' stripped+0x' "$dir/tree" && ! grep -q '/stripped+0x' "$dir/tree"
}

frame_pointers() {
	"$ctl" record --call-graph=fp -F 999 -o "$dir/profile" -- "$dir/static" raise 0.3 2>"$dir/err"
	check "record --call-graph=fp of a program without frame pointers names the remedy" \
		grep -q 'of the stacks are truncated: --call-graph=fp follows frame pointers only; -g uses' "$dir/err"
}

# Linkers write no .eh_frame_hdr into a static program. One without any rules is not a failure.
static_programs() {
	record --user-only -- "$dir/static" nested 0.6
	expect "stacks of a static program reach main()" static 150 "$nests"
	strip -o "$dir/stripped" "$dir/static"
	"$ctl" record -q -g -F 999 -o "$dir/profile" -- "$dir/stripped" raise 0.3 2>"$dir/err"
	check "report --tree names functions of a stripped program by its name and their offsets" tree_names
	cat >"$dir/bare.c" <<-'END'
		void _start(void);
		void _start(void)
		{
			for (volatile long i = 0; i < 100000000; i++)
				;
			__builtin_trap();
		}
	END
	check "a program without unwind rules is built" "${CC:-gcc}" -O2 -static -nostdlib -fno-asynchronous-unwind-tables \
		-Wl,--build-id=none -o "$dir/bare" "$dir/bare.c"
	"$ctl" record -q -g -F 999 --user-only -f folded -o "$dir/folded" -- "$dir/bare" 2>"$dir/err"
	check "record -g of a program without unwind rules returns its status, a signal" test $? -gt 128 -a -s "$dir/folded"
}

# In the kernel, the innermost frame of the program is the instruction that faults.
faults() {
	record -- "$paths" fault 0.6
	expect "a function is found that its first instruction has left by a fault" paths 150 \
		"act;faults(;faulting|;[^;]*madvise|;clock|)$kernel"
	least=60 expect "most of these stacks are in the fault" paths 150 "act;faults;faulting$kernel"
}

# The second library takes the addresses of the first, with other rules. The first run makes them when the libraries are
# loaded, however late the profiler gets a CPU; the others have them from the start.
libraries() {
	local one="main_one;inside;called_back;spin$kernel" two="main_two;inside;called_back;spin$kernel" how

	cp "$dir/one.so" "$dir/first.so"
	cp "$dir/two.so" "$dir/second.so"
	record --user-only -- "$dir/plugins" 0.6 keep "$dir/first.so" main_one "$dir/second.so" main_two
	least=50 expect "stacks reach main() from callbacks of libraries that were not known" plugins 250 "load;(${one}|${two})"
	for how in keep delete; do
		cp "$dir/one.so" "$dir/first.so"
		cp "$dir/two.so" "$dir/second.so"
		record --user-only -- "$dir/plugins" 0.6 $how "$dir/first.so" main_one "$dir/second.so" main_two
		expect "stacks reach main() from callbacks of loaded libraries ($how)" plugins 250 "load;(${one}|${two})"
	done
}

generated() {
	record --user-only -- "$dir/jit" 0.6
	expect "stacks reach main() through generated code" jit 250 \
		'enters;\[anon\][^;]*;\[anon\][^;]*(;called_back'"$kernel)?"
	record --user-only -- "$dir/jit" 0.6 named >"$dir/pid"
	rm -f "/tmp/perf-$(cat "$dir/pid").map"
	expect "functions of generated code have the names of the perf map" jit 250 \
		"enters;jit_outer;(jit_loop|jit_inner;called_back$kernel)"
}

# What a script compiles itself is interpreted at first, then machine code.
node_calls() {
	local script="function leaf(n) { let s = 0; for (let i = 0; i < 1e5; i++) s += i ^ n; return s }
		function descend(n) { return n ? descend(n - 1) + 1 : leaf(n) }
		const end = process.cpuUsage().user + 1.5e6; while (process.cpuUsage().user < end) descend(20);
		console.log(process.pid)"
	local option

	for option in "" --perf-basic-prof; do
		(cd "$dir" && record --user-only -- node $option -e "$script" >"$dir/pid") # it leaves a log there
		rm -f "/tmp/perf-$(cat "$dir/pid").map"
		expect "stacks of node${option:+ $option} reach main()" node 250 '.*' 'node::Start[^;]*'
	done
	# Node itself starts in a tenth of the time.
	least=80 expect "stacks of node --perf-basic-prof have the functions of the script" node 250 \
		".*$(printf ';descend%.0s' {1..20});leaf" 'node::Start[^;]*'
}

# makecontext() starts a function without a call.
contexts() {
	cat >"$dir/context.c" <<-'END'
		#include <stdlib.h>
		#include <ucontext.h>
		static ucontext_t before, context;
		static volatile unsigned long n;
		static void work(void)
		{
			while (n < 300000000)
				n++;
		}
		int main(void)
		{
			getcontext(&context);
			context.uc_stack.ss_sp = malloc(65536);
			context.uc_stack.ss_size = 65536;
			context.uc_link = &before;
			makecontext(&context, work, 0);
			return swapcontext(&before, &context);
		}
	END
	check "a program with a context is built" "${CC:-gcc}" -O2 -fomit-frame-pointer -o "$dir/context" "$dir/context.c"
	record --user-only -- "$dir/context"
	# shellcheck disable=SC2016 # awk's
	check "stacks of a context reach its start" awk '
		{ all += $NF } /^context;.*;work [0-9]+$/ && !/cut/ { good += $NF }
		END { print good, "of", all; exit !(good > 50 && good > all * 0.95) }' "$dir/folded"
}

# A stripped program of Go has no rules, and frame pointers.
goroutines() {
	cat >"$dir/calls.go" <<-'END'
		package main

		//go:noinline
		func work(n int) int {
			if n < 2 {
				return n
			}
			return work(n-1) + work(n-2)
		}

		func main() { println(work(38)) }
	END
	check "a stripped program of Go is built" env GOCACHE="$dir/gocache" go build -ldflags="-s -w" -o "$dir/calls" "$dir/calls.go"
	record --user-only -- "$dir/calls"
	# shellcheck disable=SC2016 # awk's
	check "stacks of a stripped program of Go reach the start of their goroutine" awk '
		{ all += $NF } /;runtime.goexit[^;]*;runtime.main;main.main;/ && !/cut/ { good += $NF }
		END { print good, "of", all; exit !(good > 50 && good > all * 0.9) }' "$dir/folded"
}

children() {
	record --user-only -- "$paths" fork 0.6
	expect "stacks of a child are those of its parent and its own" paths 250 "act;forks;(in_child;)?spin$kernel"
	record --user-only -- "$paths" exec 0.6
	expect "stacks after exec are those of the new program" '[^;]*' 250 "act;(execs;)?(spin|$raised$handled)$kernel"
}

# Attaches to what OPTION selects until there are 500 samples: its stacks are as REGEX says, so there is no other process.
# The rules are made before the first sample.
attaches() { # NAME REGEX OPTION...
	attach_until 500 -q -g -F 999 --user-only -f folded -o "$dir/folded" "${@:3}" 2>"$dir/err" ||
		{ fail "$1" "$(cat "$dir/err")"; return; }
	least=99 expect "$1" '[^;]*' 100 "$2"
}

in_cgroup() { # PID
	local group=profil-paths-$$

	mkdir -p "$dir/cgroup"
	if ! mount -t cgroup2 none "$dir/cgroup" 2>"$dir/err"; then
		skip "attach -g accepts --cgroup and --unit" "$(cat "$dir/err")"
		return
	fi
	mkdir -p "$dir/cgroup/$group/paths.service"
	echo "$1" >"$dir/cgroup/$group/paths.service/cgroup.procs"
	attaches "stacks of a cgroup are those of its process" "$raises" --cgroup "/$group"
	attaches "stacks of a unit are those of its process" "$raises" --unit paths
	echo "$1" >"$dir/cgroup/cgroup.procs"
	rmdir "$dir/cgroup/$group/paths.service" "$dir/cgroup/$group"
	umount "$dir/cgroup"
}

# Two processes of two programs run all the time.
selections() {
	local one other

	cp "$paths" "$dir/other"
	"$paths" raise 60 &
	one=$!
	"$dir/other" nested 60 &
	other=$!
	await_busy "$one" "$paths"
	await_busy "$other" "$dir/other"
	attaches "stacks of two processes are those of both" "$raises|$nests" "$one" "$other"
	grep ';on_outer;' "$dir/folded" >"$dir/nested"
	# shellcheck disable=SC2016 # awk's
	check "a tenth of them are those of the second process" awk '
		FNR == NR { n += $NF; next } { all += $NF } END { exit !(n > all / 10 && n < all * 9 / 10) }' "$dir/nested" "$dir/folded"
	attaches "stacks of a command are those of its process" "$raises" --comm paths
	attaches "stacks of an executable are those of its process" "$nests" --exe "$dir/other"
	in_cgroup "$one"
	kill "$one" "$other"
	wait "$one" "$other" 2>/dev/null
}

# Runs "cuts KIND": at least 95 % of its stacks are as REGEX says. The text names the OBJECT in which they are cut,
# the REASON and, in the next line, the REMEDY. The rest are the clock, the dynamic loader and what is before rules.
cut_stacks() { # NAME KIND REGEX OBJECT REASON [REMEDY]
	"$ctl" record -q -g -F 999 --user-only -o "$dir/profile" -- "$dir/cuts" "$2" 0.6 2>"$dir/err"
	"$ctl" report -f folded -o "$dir/folded" "$dir/profile"
	# shellcheck disable=SC2016 # awk's
	check "$1" awk -v path="^cuts;$3 [0-9]+\$" '
		{ all += $NF } $0 ~ path { good += $NF }
		END { print good + 0, "of", all, "as in the last stack:", $0; exit !(all > 150 && good > all * 0.95) }' "$dir/folded"
	check "text names the object, the reason and the remedy: $5" cut_text "$4" "$5" "${6:-}"
}

cut_text() { # OBJECT REASON REMEDY
	local percent

	"$ctl" report "$dir/profile" | sed -n "/^  [0-9]*\.[0-9][0-9] % cut in $1: $2\$/{s/ *\([0-9]*\).*/\1/p;n;s/^    //p}" >"$dir/text"
	cat "$dir/text"
	percent=$(sed -n 1p "$dir/text")
	test "${percent:-0}" -ge 95 && test "$(sed -n 2p "$dir/text")" = "$3"
}

cuts() {
	build libcuts.so cuts.c -shared -fPIC -DLIBRARY
	build cuts cuts.c "$dir/libcuts.so"
	cut_stacks "a stack is cut at a CFA that is an expression" expression '\[cut: unwind expression\];expressed' \
		cuts "an unwind rule that is an expression"
	cut_stacks "a stack is cut after 255 frames" deep "\[cut: too deep\]$(printf ';recur%.0s' {1..253});spin;turns" \
		cuts "more frames than are walked" "the outermost frames are missing, the inner ones are right"
	cut_stacks "a stack is cut at a function without unwind rules" no-rules '\[cut: no unwind rules\];without_rules' \
		libcuts.so "no unwind rules and no frame pointer" \
		"gcc and clang: -fasynchronous-unwind-tables; other compilers: frame pointers (GHC has none, but a profiler of its own: -prof); debug symbols do not help"
}

# In a resolved call a stub is one jump. In one that is not resolved, which LD_BIND_NOT keeps all calls, the stub and the
# first entry of the PLT push a word each: there a page fault is a sample at that instruction. The second run has the
# rules from the start.
stubs() {
	build libtrivial.so lazy.c -shared -fPIC -DLIBRARY
	build lazy lazy.c -Wl,-z,lazy "$dir/libtrivial.so"
	record --user-only -- "$dir/lazy" 1
	least=99 expect "stacks from stubs of the PLT reach main()" lazy 200 '(calls_for;)?calls(;trivial(@plt)?)?'
	# shellcheck disable=SC2016 # awk's
	check "some of these are in a stub" awk '/;calls;trivial@plt [0-9]+$/ { n += $NF } END { print n + 0; exit !(n >= 20) }' "$dir/folded"
	if test "$(uname -m)" != x86_64; then
		skip "stacks from each instruction of a stub reach main()" "its instructions are x86-64's"
		return
	fi
	for _ in 1 2; do
		LD_BIND_NOT=1 "$ctl" record -q -g -e page-faults -c 1 -f folded -o "$dir/folded" -- "$dir/lazy" faults 1000 2>"$dir/err"
	done
	# shellcheck disable=SC2016 # awk's
	check "stacks from each instruction of a stub reach main()" awk '
		/;call_at;[^;]*$/ && !/^lazy;_start;.*;main;call_at;/ { bad += $NF }
		/;main;call_at;trivial@plt [0-9]+$/ { stub += $NF }
		/;main;call_at;[^;]*lazy[+]0x[0-9a-f]+ [0-9]+$/ { first += $NF }
		END { print stub + 0, first + 0, bad + 0, $0; exit !(stub >= 990 && first >= 990 && bad + 0 == 0) }' "$dir/folded"
}

build paths call_paths.c
build static call_paths.c -static
build plugins plugins.c -ldl
build one.so plugin.c -shared -fPIC -DFRAME=100 -DTEXT='"16"' -DNAME=main_one
build two.so plugin.c -shared -fPIC -DFRAME=900 -DTEXT='"9000"' -DNAME=main_two
build jit jit_calls.c
daemon_start
signals
static_programs
frame_pointers
faults
libraries
generated
if command -v node >/dev/null; then node_calls; else lacks "stacks of node reach main()" "node"; fi
contexts
if command -v go >/dev/null; then goroutines; else lacks "stacks of a stripped program of Go" "go"; fi
children
selections
cuts
stubs
daemon_stop
finish
