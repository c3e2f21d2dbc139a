# shellcheck shell=bash
# jitdump.sh - what is checked of a recorded program with a jitdump on each architecture
# shellcheck disable=SC2154 # what lib.sh and the test set

# Records PROGRAM of tests/programs/jitdump.c into $dir/kept.
record_jitdump() { # PROGRAM
	printf '%s\n' first second third fourth fifth sixth subtract branch return call loop >"$dir/source"
	check "a program with a jitdump is recorded" "$ctl" record -q -g -F 499 -o "$dir/kept" -- "$1" "$dir" "$dir/source" 1
}

# The rules of the image are read when its first sample is found.
jitdump_stacks() {
	"$ctl" report -f folded -o "$dir/folded" "$dir/kept"
	grep 'generated' "$dir/folded" | grep -v '^[^;]*;\[cut: rules not read yet\];generated\b' >"$dir/stacks"
	check "its stacks go through generated code without frame pointers up to the start" awk \
		'!/^[^[]*;main;caller;generated/ { exit 1 } END { exit !NR }' "$dir/stacks"
}
