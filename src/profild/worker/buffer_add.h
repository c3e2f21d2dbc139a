/* buffer_add.h - adds counts to the buffers of a process */
#ifndef PROFIL_PROFILD_WORKER_BUFFER_ADD_H
#define PROFIL_PROFILD_WORKER_BUFFER_ADD_H

#include "process_memory.h"
#include "work.h"

/*
 * Writes all spans of profile @p to its memory @m (NULL: it no longer exists) and stores the
 * outcomes. Returns the next profile in the area.
 */
struct work_profile *buffer_add(struct memory *m, struct work_profile *p);

#endif
