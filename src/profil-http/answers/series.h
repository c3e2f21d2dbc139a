/* series.h - sample counters by name, with a limit on the number of names */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_SERIES_H
#define PROFIL_PROFIL_HTTP_ANSWERS_SERIES_H

#include <stddef.h>
#include <stdbool.h>
#include <linux/types.h>

#define SERIES_MAX 100 /* with their own names */

struct amount {
	const char *name;
	__u64 samples;
};

struct one_series {
	char *name;
	__u64 base; /* samples counted in @other before it got its name */
	__u64 samples;
};

/*
 * A monitoring system stores each series for a long time, and takes a decreasing counter for a
 * restart. So a named series keeps its name and counts samples since it got it; @other counts the
 * rest. At any time all counters add up to all samples, and none decreases. Zeroed, it is empty.
 */
struct series {
	struct one_series one[SERIES_MAX];
	size_t n;
	__u64 other;
	bool begun;
};

/*
 * Updates the counters from @a, the samples so far by name, in which a name can occur several
 * times, and @total, all samples. A name with at least @enough samples gets its own series up to
 * SERIES_MAX. Sorts @a. Returns 0 or -ENOMEM.
 */
int series_update(struct series *s, struct amount *a, size_t n, __u64 total, __u64 enough);

void series_fini(struct series *s);

#endif
