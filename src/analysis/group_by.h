/* group_by.h - sums up the samples of a profile by function, line, object, process and so on */
#ifndef PROFIL_ANALYSIS_GROUP_BY_H
#define PROFIL_ANALYSIS_GROUP_BY_H

#include "profile/profile.h"

#include "rows.h"

enum rows_by {
	ROWS_FUNCTION,
	ROWS_INLINED, /* functions, inlined ones separately */
	ROWS_LINE,
	ROWS_INSTRUCTION,
	ROWS_OBJECT,
	/* What ran, if the profile has such groups; these rows have no object. */
	ROWS_PROCESS,
	ROWS_COMMAND,
	ROWS_THREAD,
	ROWS_CGROUP,
	ROWS_UNIT,
	ROWS_CONTAINER,
	ROWS_HOST,
	/* What threads wait for: kinds of waits, and locks. */
	ROWS_WAIT,
	ROWS_LOCK,
};

/* Returns 0, -ENOENT if the profile has no groups for @by, or -ENOMEM. rows_fini() in any case. */
int rows_init(struct rows *rows, const struct profile *p, enum rows_by by);

void rows_fini(struct rows *rows);

/* Says whether rows of this kind have an object. */
bool rows_have_object(enum rows_by by);

/* The name of @g in rows of what ran; the caller frees it. NULL: out of memory. */
char *rows_group_name(const struct profile *p, const struct group *g, enum rows_by by);

/* The name of @by, as --by takes it. */
const char *rows_by_name(enum rows_by by);

/* Returns 0, or -EINVAL for an unknown name. */
int rows_by_find(enum rows_by *by, const char *name);

#endif
