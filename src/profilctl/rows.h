/* rows.h - the samples of a profile, summed up by what the reader wants to see */
#ifndef PROFIL_ROWS_H
#define PROFIL_ROWS_H

#include "profile.h"

enum rows_by {
	ROWS_FUNCTION,
	ROWS_INLINED, /* functions, those that were inlined for themselves */
	ROWS_LINE,
	ROWS_INSTRUCTION,
	ROWS_OBJECT,
	ROWS_THREAD, /* where there are some in the profile: they have no object */
};

struct row {
	char *name;
	__u64 samples;
	__u32 object;
	bool shared; /* see struct function */
};

/* Most samples first; they add up to binned. */
struct rows {
	struct row *row;
	size_t n;
};

/* Returns 0 or -ENOMEM. rows_fini() in any case. */
int rows_init(struct rows *rows, const struct profile *p, enum rows_by by);

void rows_fini(struct rows *rows);

/* -EINVAL: none is called @name. */
int rows_by_find(enum rows_by *by, const char *name);

#endif
