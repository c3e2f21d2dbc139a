/* jsonname.h - names of unknown origin as JSON */
#ifndef PROFIL_JSONNAME_H
#define PROFIL_JSONNAME_H

#include <jansson.h>

#include "profile.h"

/* Names are what somebody wrote into a file: what is no UTF-8 gives way to '?'. NULL: ENOMEM. */
json_t *jsonname(const char *s);

json_t *jsonname_of(const struct profile *p, const struct function *f);

#endif
