/* locations.h - places, each with its function */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_LOCATIONS_H
#define PROFIL_PROFIL_HTTP_ANSWERS_LOCATIONS_H

#include "profil-http/machine/difference.h"

struct location {
	struct place place;
	__u32 function; /* index + 1; 0: unknown */
};

struct named {
	char *name;
	__u64 start; /* offset in the object */
	__u32 object;
	__u64 samples;
};

/* Places and functions, both sorted by object and offset. */
struct locations {
	struct location *location;
	size_t n;
	struct named *function;
	size_t nfunctions;
};

/* Returns 0 or -ENOMEM; locations_fini() in any case. */
int locations_init(struct locations *l, struct names *n, const struct places *places);

/* The index of @place, which is one of them. */
size_t locations_find(const struct locations *l, const struct place *place);

void locations_fini(struct locations *l);

#endif
