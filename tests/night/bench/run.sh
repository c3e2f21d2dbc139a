#!/bin/bash
# run.sh - measures profil against every profiler that is installed, interleaved, as root
#
# ROUNDS=7 is how often each measurement is made, PARTS which (overhead handler inherit asleep program
# stacks machine idle mirror calls delivered accuracy bytes), QUICK=1 makes all of it short, MEMORY_S=600
# lets the machine's profiles run for ten minutes before their memory is measured again. It prints a table and
# writes $BUILD/bench.json. What misses a limit is marked, and with a ? where the rounds differ so
# much that this run cannot tell; nothing fails by a number.
# shellcheck source=tests/night/bench/parts.sh
. "$(dirname "$0")/parts.sh"
# shellcheck source=tests/night/bench/machine.sh
. "$(dirname "$0")/machine.sh"
# shellcheck source=tests/night/bench/stacks.sh
. "$(dirname "$0")/stacks.sh"

QUICK=${QUICK:-}
ROUNDS=${ROUNDS:-${QUICK:+2}}
ROUNDS=${ROUNDS:-7}
PARTS=${PARTS:-overhead handler inherit asleep program stacks machine idle mirror calls delivered accuracy bytes}
if test -n "$QUICK"; then
	RATES='250 1000' SECONDS_EACH=0.3 SPLIT=1 FORKS=1000 SWITCHES=20000 ASLEEP=1 IDLE=2 MANY_S=1 FLEET=50
	BYTES_AFTER='1 3' HANDLER_S=0.1 HANDLER_TURNS=1 MIX_S=2 MEMORY_S=${MEMORY_S:-2}
else
	RATES='100 250 1000 9999' SECONDS_EACH=1 SPLIT=5 FORKS=5000 SWITCHES=200000 ASLEEP=5 IDLE=10
	MANY_S=7 FLEET=1000 BYTES_AFTER='1 60' HANDLER_S=0.1 HANDLER_TURNS=20 MIX_S=10 MEMORY_S=${MEMORY_S:-60}
fi
CPU=$(($(nproc) - 1))
BPFTOOL=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v bpftool)
GPERFTOOLS=$(find /usr/lib -name 'libprofiler.so*' 2>/dev/null | sort | head -n 1)

if test "$(id -u)" -ne 0; then
	echo "make bench: only root can measure what the kernel does: sudo make bench" >&2
	exit 1
fi

run_once() { # FUNCTION
	if declare -F "$1" >/dev/null; then "$1"; fi
}

for part in $PARTS; do
	if ! declare -F "part_$part" >/dev/null; then
		echo "make bench: there is no part $part" >&2
		exit 2
	fi
done
for part in $PARTS; do
	printf '%s: ' "$part" >&2
	run_once "part_${part}_begin"
	for ((round = 1; round <= ROUNDS; round++)); do
		"part_$part"
		printf . >&2
	done
	run_once "part_${part}_end"
	stop_all
	echo >&2
done
jq -Rs --arg machine "$(uname -srm), $(nproc) CPUs" --argjson rounds "$ROUNDS" \
	-f tests/night/bench/summary.jq <"$numbers" >"$BUILD/bench.json" || exit 1
jq -r -f tests/night/bench/table.jq "$BUILD/bench.json" | column -t -s $'\t'
echo "all values of all rounds: $BUILD/bench.json"
