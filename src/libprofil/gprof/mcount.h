/* mcount.h - counts the calls of a -pg program */
#ifndef PROFIL_LIBPROFIL_GPROF_MCOUNT_H
#define PROFIL_LIBPROFIL_GPROF_MCOUNT_H

#include "core/gmon_file.h"

/* Sets the graph in which calls are counted; NULL: none. It must never be unmapped. */
void mcount_set(struct profil_graph *g);

/* Counts a call from @from_pc of the function with @self_pc. Safe in any thread and context. */
void mcount_call(unsigned long from_pc, unsigned long self_pc);

#endif
