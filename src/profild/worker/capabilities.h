/* capabilities.h - drops the rights that a process of the daemon does not need */
#ifndef PROFIL_PROFILD_WORKER_CAPABILITIES_H
#define PROFIL_PROFILD_WORKER_CAPABILITIES_H

#include <stdint.h>

#define CAPABILITY(n) (UINT64_C(1) << (n))

/*
 * Drops all capabilities but those of @keep that this process has; ambient and inheritable ones,
 * which an exec would pass on, all. Returns 0 or a negative errno.
 */
int capabilities_keep(uint64_t keep);

#endif
