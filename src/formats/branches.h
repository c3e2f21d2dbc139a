/* branches.h - the records of taken branches in a profile, for formats that take branches */
#ifndef PROFIL_FORMATS_BRANCHES_H
#define PROFIL_FORMATS_BRANCHES_H

#include <stdbool.h>

#include "profile/profile.h"

/*
 * So many branches that were taken from @from to @to. In a profile that is a stack of @from + 1 and
 * @to, or, where the code ran from @to to the next taken branch @end, of @from + 1, @to + 1 and
 * @end: outer frames are return addresses. Offsets are those of a place.
 */
struct branch {
	__u64 from;
	__u64 to;
	__u64 end; /* at or behind @to, in its object */
	__u64 count;
	__u32 from_object;
	__u32 object; /* of @to and @end */
	bool runs;    /* @end is known */
};

/* Reads those of @p, in an array that the caller frees. Returns 0 or -ENOMEM. */
int branches_read(struct branch **out, size_t *n, const struct profile *p);

/* Adds the stack of @b to @t. Returns 0 or -ENOMEM. */
int branches_add(struct call_tree *t, const struct branch *b);

#endif
