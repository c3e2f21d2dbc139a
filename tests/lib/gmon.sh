#!/bin/bash
# gmon.sh - "profilctl run" of tests/programs/calls.c, whose gmon.out is in the working directory
# shellcheck source=tests/lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck disable=SC2154 # dir is lib.sh's

ctl=$(realpath "$BUILD/profilctl")
for kind in pie no-pie; do
	"${CC:-gcc}" -O1 -fno-inline -falign-functions=16 -g -pg -$kind -pthread -o "$dir/$kind" \
		tests/programs/calls.c || exit 1
done

# Only root may write to this directory. The programs print the CPU time that they used.
mkdir "$dir/here"
cd "$dir/here" || exit 1

rate=(-F 1000)
run() { # PROGRAM ARG...
	rm -f gmon.out
	"$ctl" run "${rate[@]}" -- "$@" >"$dir/out" 2>"$dir/said"
	test $? -ne 125 || { cat "$dir/said"; false; }
}

# Prints the samples in gmon.out.
gmon_samples() {
	python3 "$OLDPWD/tests/lib/gmon.py" gmon.out
}

# Prints the samples that run reported: those in gmon.out, elsewhere, and lost.
reported() {
	grep -oE '[0-9]+ samples; [0-9]+ elsewhere, [0-9]+ lost' "$dir/said" | tr -cd '0-9 '
}

# Profiles with the daemon that answers, at its rate, instead of one of run's own.
run_by_daemon() {
	cd "$OLDPWD" || exit 1
	daemon_start
	cd "$dir/here" || exit 1
	rate=()
}

# Without a daemon that answers, run starts one.
export PROFIL_SOCKET=$dir/no-daemon TMPDIR=$dir
