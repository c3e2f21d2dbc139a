/* interval.h - how far a share that was sampled may be from the true one */
#ifndef PROFIL_INTERVAL_H
#define PROFIL_INTERVAL_H

#include <linux/types.h>

/* Of a share in per cent, at 95 %. */
struct interval {
	double low;
	double high;
};

/* Wilson's: it holds for few samples and for shares near 0 and 100 % as well. */
struct interval interval_of(__u64 samples, __u64 total);

#endif
