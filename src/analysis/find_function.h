/* find_function.h - finds the functions of a profile by name or regular expression */
#ifndef PROFIL_ANALYSIS_FIND_FUNCTION_H
#define PROFIL_ANALYSIS_FIND_FUNCTION_H

#include "profile/profile.h"

struct matches {
	const struct function **function; /* most samples first */
	size_t n;
};

/*
 * Finds the functions with exactly this name, in any form that reports print; else those of which
 * @name is an alias; else those whose name contains @name, in which "..." matches anything.
 * "/REGEX/" is an extended regular expression. Returns 0, -ENOENT, -EINVAL for an invalid
 * expression, or -ENOMEM. matches_fini() in any case.
 */
int matches_find(struct matches *out, const struct profile *p, const char *name);

void matches_fini(struct matches *m);

#endif
