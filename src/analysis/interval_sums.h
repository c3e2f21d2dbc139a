/* interval_sums.h - the profiles of many intervals in memory, for their sum over any span of time
 */
#ifndef PROFIL_ANALYSIS_INTERVAL_SUMS_H
#define PROFIL_ANALYSIS_INTERVAL_SUMS_H

#include "group_by.h"
#include "profile/merge.h"

/*
 * Names are held once for all intervals: objects, groups, functions (as frames) and stacks are
 * numbered, and an interval is a list of numbers with counts. The sum over a span adds these lists,
 * and then makes a profile of the numbers that have samples. Code is counted by function, not by
 * place.
 *
 * The machine's profile counts what ran (commands, cgroups) by object only, unless it has stacks,
 * which have groups. Its functions and stacks have an owner: the group of the stack or, if it is not
 * known, one with those names that all samples of the object (of the innermost frame) had in the
 * interval. A name that differed is unknown: a NULL cgroup, the command
 * SUMS_SEVERAL. What a filter asks for and the owner does not tell is counted by object, without a
 * function.
 */
#define SUMS_SEVERAL "[several commands]"
#define SUMS_UNKNOWN "(functions not distinguished)"

/* Something that is counted. */
struct sums_part {
	__u32 what;  /* FUNCTIONS: a frame; RUNS: an object; STACKS: a node */
	__u32 group; /* of RUNS */
	__u32 owner; /* a group; 0: unknown */
};

enum sums_kind {
	SUMS_FUNCTIONS,
	SUMS_RUNS,   /* samples of a group in an object */
	SUMS_STACKS, /* samples of a stack's innermost function */
	SUMS_KINDS
};

struct sums_parts {
	struct sums_part *part;
	size_t n;
	struct index_slots slots; /* by index + 1 */
};

struct sums_count {
	__u32 part;
	__u32 samples;
};

struct interval {
	time_t start, seconds;
	__u64 tick_ns, duration_ns;
	__u64 total, unmatched, lost;
	struct sums_count *count[SUMS_KINDS];
	size_t n[SUMS_KINDS];
};

/* Zeroed, it is empty. */
struct interval_sums {
	struct merge names;  /* its profile has no samples */
	__u32 unit, command; /* objects of frames that are no code */
	struct sums_parts parts[SUMS_KINDS];
	struct interval *interval; /* sorted by start */
	size_t n;
	size_t removed;
	size_t bytes; /* of the lists */
};

/* Adds @p, which is symbolized. Returns 0 or a negative errno. */
int interval_sums_add(struct interval_sums *s, const struct profile *p, time_t start,
		      time_t seconds);

/* The number of intervals with this start and length: the clock may have been set back. */
size_t interval_sums_count(const struct interval_sums *s, time_t start, time_t seconds);

/* Removes the oldest @n intervals. Names stay. */
void interval_sums_remove(struct interval_sums *s, size_t n);

void interval_sums_fini(struct interval_sums *s);

/* What to sum up. */
struct sums_choice {
	time_t since, until;	     /* intervals with their middle in this span */
	const char *name[ROWS_HOST]; /* rows of what ran, by enum rows_by; NULL: all */
	const char *language;	     /* of the innermost function, see sums_language(); NULL: all */
	bool by_unit;		     /* stacks begin with unit and command */
};

/* These profiles share objects and groups of the sums. */
struct sums_range {
	struct profile *profile;
	struct profile *all; /* without regard to names and language: samples by object and group */
	size_t intervals;
	size_t other_rate; /* intervals left out: their samples stand for another time */
	bool stacks;	   /* intervals have stacks; else a stack is a file and its function */
};

/*
 * Sums up the intervals of @c. Their functions are frames of the profile's stacks, too. Returns 0
 * or -ENOMEM. sums_range_fini() in any case, before @s changes.
 */
int interval_sums_range(struct sums_range *out, const struct interval_sums *s,
			const struct sums_choice *c);
void sums_range_fini(struct sums_range *r);

/* The language of code in @o: "kernel", "native", "JIT", "python", ... */
const char *sums_language(const struct object *o);

#endif
