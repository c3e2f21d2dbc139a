#!/bin/bash
# jitdump.sh - code that a JIT compiler describes in a jitdump: its name, lines, instructions and callers
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
# shellcheck source=tests/lib/jitdump.sh
. tests/lib/jitdump.sh

ctl=$BUILD/profilctl

generated() { # NAME JQ: function generated() of the recorded profile
	check "$1" jq -e ".functions[] | select(.name == \"generated\") | $2" "$dir/json"
}

${CC:-gcc} -O2 -o "$dir/jitdump" tests/programs/jitdump.c || exit 1
daemon_start
record_jitdump "$dir/jitdump"
"$ctl" report -f json -o "$dir/json" "$dir/kept"
generated "code that moved has its name" '.samples > 0'
check "what was at its former address has none" jq -e 'all(.functions[]; .name != "replaced")' "$dir/json"
"$ctl" annotate generated "$dir/kept" >"$dir/annotated"
check "its samples are on the lines of its source" awk '/[78]  (subtract|branch)$/ { n++ } END { exit !n }' "$dir/annotated"
check "its instructions are listed" grep -qE '\b(jne|b\.ne)\b' "$dir/annotated"
samples=$(jq '.functions[] | select(.name == "generated") | .samples' "$dir/json")
# shellcheck disable=SC2016 # awk's fields
check "all of its samples are on instructions" awk -v all="$samples" '/^in order/ { n = 0; next } /: +(sub|jne|ret|b\.ne)/ { n += $1 ~ /^[0-9]+$/ ? $1 : 0 } END { exit n != all }' \
	"$dir/annotated"
jitdump_stacks
"$ctl" report -a --by line "$dir/kept" >"$dir/lines"
check "each line with its samples is its own" awk '/ generated / { n++ } / generated / && !/ source:[78] generated / { exit 1 } END { exit !n }' \
	"$dir/lines"
"$ctl" report -f callgrind -o "$dir/callgrind" "$dir/kept"
# shellcheck disable=SC2016 # awk's fields
check "a caller in a stack is in the line of its call" awk '/^fn=/ { fn = $0 } /^calls=/ { getline; if (fn == "fn=caller") { n++; bad += $2 != 10 } } END { exit !n || bad }' \
	"$dir/callgrind"
rm "$dir"/jit-*.dump
"$ctl" annotate generated "$dir/kept" >"$dir/annotated"
check "without the jitdump annotate says why it lists nothing" grep -q "the jitdump, in which the code was, was removed or replaced" "$dir/annotated"
finish
