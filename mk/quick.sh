#!/bin/bash
# quick.sh - which replay suites "make quick" runs: those of the files that a change touches
#
# usage: mk/quick.sh [files]    prints suites for tests/run.sh; "files": prints the changed files
#
# A change is what differs from the upstream branch, or from main; on main itself: from its parent.
set -u
cd "$(dirname "$0")/.." || exit 1

base() {
	local ref

	for ref in '@{upstream}' main origin/main; do
		ref=$(git merge-base HEAD "$ref" 2>/dev/null) || continue
		if test "$ref" = "$(git rev-parse HEAD)"; then ref=$(git rev-parse -q --verify HEAD~1); fi
		echo "$ref"
		return
	done
}

changed() {
	git diff --name-only --diff-filter=d "$(base)" 2>/dev/null
	git ls-files -o --exclude-standard 2>/dev/null
}

# Scripts below tests/gate/ and Criterion suites of gate-tests, by the folder of a source.
suites() { # FILE
	case $1 in
	tests/gate/replay/*.sh | tests/gate/both/*.sh) echo "${1#tests/gate/}" ;;
	src/libprofil/* | include/*) echo both/conformance.sh replay/headers.sh gate-tests:replay_vectors ;;
	tests/gate/conformance/* | tests/programs/ported/*) echo both/conformance.sh replay/headers.sh ;;
	src/profild/* | src/core/*) echo gate-tests:wire gate-tests:replay_vectors both/conformance.sh replay/reload.sh ;;
	src/*completion/*) echo replay/completion.sh ;;
	src/*formats/*) echo replay/formats.sh ;;
	src/*analyze/* | src/*profile/* | src/*symbols/*) echo replay/reports.sh replay/stacks.sh ;;
	src/*verbs/run*) echo replay/run.sh ;;
	src/*spool*) echo replay/spool.sh ;;
	src/*doctor*) echo replay/doctor.sh ;;
	src/*) echo both/profilctl.sh replay/habits.sh replay/output.sh ;;
	tests/run.sh | tests/night/vm/guest.sh) echo replay/runner.sh replay/nightly.sh ;;
	tests/NIGHTLY | tests/lib/nightly.py) echo replay/nightly.sh ;;
	tests/lib/verdict.* | tests/gate/replay/verdict.py) echo replay/verdict.sh ;;
	Makefile | mk/* | systemd/*) echo replay/install.sh replay/build.sh ;;
	tests/programs/stacks.py) echo replay/stacks.sh replay/events.sh ;;
	*) ;;
	esac
}

if test "${1:-}" = files; then
	changed
	exit
fi
changed | while read -r file; do suites "$file"; done | tr ' ' '\n' | sort -u |
	sed -E -e "s,^gate-tests:,replay:${BUILD:-build}/tests/&," -e 's,^(both|replay)/,replay:tests/gate/&,'
