#!/bin/bash
# analyze.sh - the sources under gcc's analyzer, clang-tidy, cppcheck and shellcheck
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

check "make analyze is clean" make --no-print-directory -j"$(nproc)" analyze
finish
