/* capabilities.h - drops the rights that a process of the daemon does not need */
#ifndef PROFIL_PROFILD_WORKER_CAPABILITIES_H
#define PROFIL_PROFILD_WORKER_CAPABILITIES_H

#include <stdint.h>

#define CAPABILITY(n) (UINT64_C(1) << (n))

/*
 * Drops all capabilities but those of @keep that this process has; ambient and inheritable ones,
 * which an exec would pass on, all. Those kept are effective. Returns 0 or a negative errno.
 */
int capabilities_keep(uint64_t keep);

/* Takes effect for this thread and those that it starts; it may raise them again. */
int capabilities_lower(uint64_t lowered);
int capabilities_raise(uint64_t raised);

#endif
