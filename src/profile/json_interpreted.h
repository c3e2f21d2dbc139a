/* json_interpreted.h - the functions of interpreted languages in a profile's file */
#ifndef PROFIL_PROFILE_JSON_INTERPRETED_H
#define PROFIL_PROFILE_JSON_INTERPRETED_H

#include <jansson.h>

#include "profile.h"

/* The functions of object @object of @p that have samples. NULL: out of memory. */
json_t *json_interpreted(const struct profile *p, __u32 object);

/* Reads @functions, from a file that anybody can have made, into @o. 0, -EINVAL or -ENOMEM. */
int json_interpreted_load(struct object *o, const json_t *functions);

#endif
