/* plain.h - the profil(2) that most systems have, in a dialect's numbers */
#ifndef PROFIL_PLAIN_H
#define PROFIL_PLAIN_H

#include "dialect.h"

/*
 * One buffer; a scale that is off stops what is on, any other replaces it. Does it as a public
 * function does: 0, or -1 with errno set.
 */
int plain_profil(const struct dialect *d, const void *buf, __u64 bytes, __u64 offset, __u64 scale);

#endif
