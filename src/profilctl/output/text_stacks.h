/* text_stacks.h - call trees as text, and how stacks end */
#ifndef PROFIL_PROFILCTL_OUTPUT_TEXT_STACKS_H
#define PROFIL_PROFILCTL_OUTPUT_TEXT_STACKS_H

#include <stdbool.h>
#include <stdio.h>

#include "profile/profile.h"

/*
 * Writes the share of complete stacks of @p, and why and where the others are truncated. Writes
 * nothing if it has no stacks.
 */
void text_stacks(FILE *out, const struct profile *p);

struct text_tree {
	const char *callers; /* name of the functions whose callers to write; NULL: none */
	const char *
		callees; /* likewise, callees; both NULL: all calls from the start of the threads */
	const char *wakers;	   /* what woke up threads in these functions; else NULL */
	const struct function *of; /* write the callers of this function; NULL: by name */
	double least_percent;
	size_t rows;	/* at most, those with the most samples; 0: no limit */
	size_t columns; /* 0: 80 */
	bool full_names;
};

/*
 * Returns 0, -ENODATA without stacks, -ENOENT if no function matches, -EINVAL for an invalid
 * expression, or -ENOMEM.
 */
int text_tree(FILE *out, const struct profile *p, const struct text_tree *t);

#endif
