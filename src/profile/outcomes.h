/* outcomes.h - one table of the counts of what a profile lacks, beside unmatched and lost samples
 */
#ifndef PROFIL_PROFILE_OUTCOMES_H
#define PROFIL_PROFILE_OUTCOMES_H

#include "profile.h"

struct outcome {
	const char *name;	/* of the member of struct profile, and in JSON */
	size_t profile, table;	/* its offset, and that of the kernel's counter; 0: has none */
	const char *one, *many; /* for reports: the unit of 1 and of more; NULL: it is a time */
	const char *text;	/* the rest of the sentence; NULL: reports do not say it */
};

#define OUTCOMES 12
extern const struct outcome outcomes[OUTCOMES];

static inline __u64 *outcome_of(const struct profile *p, const struct outcome *o)
{
	return (__u64 *)((char *)p + o->profile);
}

#endif
