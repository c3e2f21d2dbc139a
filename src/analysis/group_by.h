/* group_by.h - sums up the samples of a profile by function, line, object, process and so on */
#ifndef PROFIL_ANALYSIS_GROUP_BY_H
#define PROFIL_ANALYSIS_GROUP_BY_H

#include "profile/profile.h"

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
};

struct row {
	char *name;
	/* The part of @name that is a function's name and can be shortened. */
	size_t function_at;
	size_t function_len;
	__u64 samples;
	__u32 object;
	__u64 offset; /* of the function, which tells two of one name apart; 0: none */
};

/* Most samples first; they add up to binned. */
struct rows {
	struct row *row;
	size_t n;
};

/* Returns 0, -ENOENT if the profile has no groups for @by, or -ENOMEM. rows_fini() in any case. */
int rows_init(struct rows *rows, const struct profile *p, enum rows_by by);

void rows_fini(struct rows *rows);

/* Says whether rows of this kind have an object. */
bool rows_have_object(enum rows_by by);

/* The name of @by, as --by takes it. */
const char *rows_by_name(enum rows_by by);

/* Returns 0, or -EINVAL for an unknown name. */
int rows_by_find(enum rows_by *by, const char *name);

#endif
