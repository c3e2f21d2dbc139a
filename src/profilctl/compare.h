/* compare.h - what changed between two profiles, and what is only noise */
#ifndef PROFIL_COMPARE_H
#define PROFIL_COMPARE_H

#include "profile.h"

/* What may be found by chance in one comparison of two profiles of the same, all functions
 * together. */
#define COMPARE_ERROR 0.01

struct change {
	char *name;
	char *object; /* without its directory: another build may lie elsewhere */
	__u64 samples[2];
	double percent[2];
	double low; /* the change in percentage points lies between these, at 95 % */
	double high;
	double p; /* how probable so great a difference is without a change; 1: too few samples */
	bool significant;
};

struct changes {
	struct change *change; /* the significant ones first, the greater ones first */
	size_t n;
	size_t tested;
	size_t significant;
};

/* Compares by function. Returns 0 or -ENOMEM. compare_fini() in any case. */
int compare_init(struct changes *c, const struct profile *a, const struct profile *b);

void compare_fini(struct changes *c);

#endif
