/* top.h - what is hot now: the parts of it that need no daemon */
#ifndef PROFIL_TOP_H
#define PROFIL_TOP_H

#include <stdio.h>

#include "profile.h"

struct top_table {
	__u64 period_ns; /* in which it was counted */
	size_t processes;
	size_t lines; /* that there is room for */
	size_t columns;
};

/* Writes the hottest functions of @p. Returns 0 or -ENOMEM. */
int top_write(FILE *out, const struct profile *p, const struct top_table *t);

#endif
