/* json_stacks.h - the stacks of a profile as JSON */
#ifndef PROFIL_PROFILE_JSON_STACKS_H
#define PROFIL_PROFILE_JSON_STACKS_H

#include <jansson.h>

#include "profile.h"

/* The stacks, and how they end. NULL: out of memory. */
json_t *json_stacks(const struct profile *p);

/*
 * Reads @stacks, which can be NULL, into @p, whose objects and counts are complete. Returns 0,
 * -EINVAL or -ENOMEM.
 */
int json_load_stacks(struct profile *p, const json_t *stacks);

#endif
