/* compare.h - the significant changes between two profiles */
#ifndef PROFIL_ANALYSIS_COMPARE_H
#define PROFIL_ANALYSIS_COMPARE_H

#include "profile/profile.h"

/*
 * Family-wise error rate: the probability that comparing two recordings of the same behaviour finds
 * any significant change.
 */
#define COMPARE_ERROR 0.01

struct change {
	char *name;
	char *object; /* without its directory, which can differ between builds */
	__u64 samples[2];
	double percent[2];
	/*
	 * Confidence interval of the change, in percentage points: all intervals together are right
	 * with probability 1 - COMPARE_ERROR.
	 */
	double low;
	double high;
	double p;	  /* p-value; 1: too few samples */
	bool significant; /* the interval excludes 0 */
};

struct changes {
	struct change *change; /* significant ones first, then by size */
	size_t n;
	size_t tested;
	size_t significant;
	bool sampled; /* false: off-CPU time, whose changes are not judged */
};

/* Compares by function. Returns 0 or -ENOMEM. compare_fini() in any case. */
int compare_init(struct changes *c, const struct profile *a, const struct profile *b);

void compare_fini(struct changes *c);

/*
 * Profiles of unlike length are compared by what their time amounts to in each second: CPUs in use,
 * or threads asleep. Returns the unit, "CPUs" or "asleep"; NULL: the samples are of events, or a
 * length is unknown.
 */
const char *compare_unit(const struct profile *a, const struct profile *b);

/* The number of them that @samples of @p stand for. */
double compare_quantity(const struct profile *p, __u64 samples);

#endif
