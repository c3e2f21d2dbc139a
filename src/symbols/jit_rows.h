/* jit_rows.h - unwind rules of code of a JIT compiler, from its jitdump */
#ifndef PROFIL_SYMBOLS_JIT_ROWS_H
#define PROFIL_SYMBOLS_JIT_ROWS_H

#include "profile/profile.h"
#include "symbols/elf/unwind_table.h"

/*
 * Makes the rows of the code that the jitdump of @o describes so far between @base and @base + 4
 * GiB; their offsets are from @base. Returns 0, without rows if there is no jitdump or it has no
 * rules, or -ENOMEM.
 */
int jit_rows_read(struct unwind_table *t, const struct object *o, __u64 base);

#endif
