/* plain.h - the common profil(2): one buffer, with a dialect's parameters */
#ifndef PROFIL_LIBPROFIL_DIALECTS_PLAIN_H
#define PROFIL_LIBPROFIL_DIALECTS_PLAIN_H

#include "libprofil/dialect.h"

/*
 * Starts a profile, which replaces the present one; a scale that means off stops it. Returns like a
 * public function: 0, or -1 with errno set.
 */
int plain_profil(const struct dialect *d, const void *buf, __u64 bytes, __u64 offset, __u64 scale);

#endif
