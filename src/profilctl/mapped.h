/* mapped.h - the object behind a mapping, opened while the process still has it mapped */
#ifndef PROFIL_MAPPED_H
#define PROFIL_MAPPED_H

#include <sys/types.h>

#include "maps.h"
#include "profile.h"

/*
 * Finds the object of each of @maps, those of process @pid, in @p, or adds it there. Returns 0 or
 * -ENOMEM.
 */
int mapped_objects(struct profile *p, pid_t pid, struct maps *maps);

/* The offset of @pc, which lies in @m, in its object: see struct place. */
__u64 mapped_offset(const struct mapping *m, __u64 pc);

#endif
