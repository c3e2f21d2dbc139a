#!/bin/bash
# analyze.sh - the sources under gcc's analyzer, clang-tidy, cppcheck and shellcheck; each header alone
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
# shellcheck source=tests/lib/headers.sh
. tests/lib/headers.sh

check "make analyze is clean" make --no-print-directory -j"$(nproc)" analyze
mapfile -t headers < <(find src include tests -name '*.h')
prints "headers stand alone" '' dependent "${headers[@]}"
finish
