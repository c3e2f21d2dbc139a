/* sample_location.h - the places of samples, each with its function and source line */
#ifndef PROFIL_ANALYSIS_SAMPLE_LOCATION_H
#define PROFIL_ANALYSIS_SAMPLE_LOCATION_H

#include "profile/profile.h"

struct lines_store;

struct spot {
	struct place place;
	const struct function *function; /* NULL: unknown */
	const char *file;		 /* source file; NULL: unknown */
	int line;
	const char *inlined; /* innermost function inlined at this place; NULL: none */
};

/* Sorted by object and offset; the counts add up to binned. */
struct spots {
	struct spot *spot;
	size_t n;
};

/*
 * Finds the function of each place of @p, which must outlive @s; with @lines, of @p, source
 * lines and inlined functions, too, which are in @lines. Returns 0 or -ENOMEM. spots_fini() in any case.
 */
int spots_init(struct spots *s, const struct profile *p, struct lines_store *lines);

/* Recounts the functions' samples of @p from @kept, and removes functions without samples. */
void spots_count_functions(struct profile *p, const struct spots *kept);

void spots_fini(struct spots *s);

/*
 * The function of node @at of the symbolized stacks, or the one it is inlined into, in @sorted, of
 * profile_sorted_functions(). NULL: none.
 */
struct function *function_of_node(const struct profile *p, struct function **sorted, __u32 at);

#endif
