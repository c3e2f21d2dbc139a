/* view.h - filters the samples of a profile, and folds kernel samples into user code */
#ifndef PROFIL_ANALYSIS_VIEW_H
#define PROFIL_ANALYSIS_VIEW_H

#include "profile/profile.h"

/* Selects samples; NULL: all. Objects, processes, commands and units are shell patterns. */
struct view_filter {
	const char *object;    /* a path or a base name */
	const char *process;   /* a pid or a comm */
	const char *command;   /* a comm */
	const char *function;  /* see matches_find() */
	const char *unit;      /* of systemd */
	const char *container; /* its name, or the first digits of its id */
	const char *pod;       /* its uid */
	const char *state;     /* see view_states() */
};

/* Says whether @f selects what ran, not code. */
static inline bool view_filter_is_of_groups(const struct view_filter *f)
{
	return f->process || f->command || f->unit || f->container || f->pod;
}

/*
 * Removes all samples of @p, which is symbolized, that @f does not select, from all counts. Stacks
 * are selected by their innermost frame; selecting processes removes all stacks unless they have
 * groups. Time slices remain only if whole functions or objects are selected. Groups that have
 * only sums are lost where functions are selected. Selecting states removes
 * groups, since they are known by stack. Returns 0, -ENOENT if no function matches, -ENOMSG if the
 * profile has no states, -ENODATA if the profile is not grouped by process, -EOPNOTSUPP if its
 * groups have only sums and processes are selected, -EINVAL for an invalid expression, or -ENOMEM.
 */
int view_filter(struct profile *p, const struct view_filter *f);

/*
 * Where groups have only sums, but stacks have groups, gives the places those of the stacks that end
 * there, which are the same samples. Those without a stack have no group. Returns 0 or -ENOMEM.
 */
int view_group_places(struct profile *p);

/* Describes @f, as in "object libc.so.6, command sh". Returns @out. */
const char *view_filter_text(char *out, size_t bytes, const struct view_filter *f);

/*
 * Moves samples in kernel mode to their user pc, in @p, which is symbolized; see
 * profile_fold_kernel(). Groups that have only sums are lost. Returns 0 or -ENOMEM.
 */
int view_fold_kernel(struct profile *p);

#endif
