#!/bin/bash
# analyze.sh - the sources under gcc's analyzer, clang-tidy, cppcheck and shellcheck
# shellcheck source=tests/system/lib/lib.sh
. "$(dirname "$0")/../system/lib/lib.sh"

check "make analyze is clean" make --no-print-directory -j"$(nproc)" analyze
finish
