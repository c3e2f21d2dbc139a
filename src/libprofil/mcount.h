/* mcount.h - where the calls of a -pg program are counted */
#ifndef PROFIL_MCOUNT_H
#define PROFIL_MCOUNT_H

#include "core/graph.h"

/* The graph that calls are counted in from now on, NULL for none. It must stay mapped for good. */
void mcount_set(struct profil_graph *g);

/* Counts a call of the function with @self_pc from @from_pc. Anywhere, in any thread. */
void mcount_call(unsigned long from_pc, unsigned long self_pc);

#endif
