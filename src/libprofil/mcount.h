/* mcount.h - where the calls of a -pg program are counted */
#ifndef PROFIL_MCOUNT_H
#define PROFIL_MCOUNT_H

#include "core/graph.h"

/* The graph that calls are counted in from now on, NULL for none. It must stay mapped for good. */
void mcount_set(struct profil_graph *g);

#endif
