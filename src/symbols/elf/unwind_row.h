/* unwind_row.h - converts the state of call frame instructions into a row, if it fits one */
#ifndef PROFIL_SYMBOLS_ELF_UNWIND_ROW_H
#define PROFIL_SYMBOLS_ELF_UNWIND_ROW_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "core/unwind_maps.h"

/* PROFIL_UNWIND_BEYOND if no row can express it. @signal: the frame is one of a signal. */
struct profil_unwind_row unwind_row(Dwarf_Frame *frame, bool signal);

/* How many words below the CFA the function has saved rbx of x86-64; 0: it has not. */
__u8 unwind_rbx_saved(Dwarf_Frame *frame);

#endif
