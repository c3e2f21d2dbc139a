/* json_name.h - names of unknown origin as JSON */
#ifndef PROFIL_PROFILE_JSON_NAME_H
#define PROFIL_PROFILE_JSON_NAME_H

#include <jansson.h>

#include "profile.h"

/* @s, with U+FFFD for each byte that is no UTF-8. NULL: out of memory. */
json_t *jsonname(const char *s);

json_t *jsonname_of(const struct profile *p, const struct function *f);

#endif
