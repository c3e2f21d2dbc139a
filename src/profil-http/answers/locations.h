/* locations.h - places, each with its function */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_LOCATIONS_H
#define PROFIL_PROFIL_HTTP_ANSWERS_LOCATIONS_H

#include "analysis/sample_location.h"
#include "profil-http/machine/difference.h"

/* Places sorted by object and offset, and their functions, which are those of a profile of them. */
struct locations {
	struct profile *profile;
	struct spots spots;
};

/*
 * Finds the functions of @places. @n must not be updated before locations_fini(), which is due in
 * any case. Returns 0 or -ENOMEM.
 */
int locations_init(struct locations *l, struct names *n, const struct places *places);

/* The index of @place, which is one of them and covers at most one byte. */
size_t locations_find(const struct locations *l, const struct place *place);

void locations_fini(struct locations *l);

#endif
