/* confidence.h - the confidence interval of a sampled share */
#ifndef PROFIL_PROFILE_CONFIDENCE_H
#define PROFIL_PROFILE_CONFIDENCE_H

#include <linux/types.h>

/* 95 % confidence interval of a share, in per cent. */
struct interval {
	double low;
	double high;
};

/*
 * The Wilson score interval, which is valid for few samples and for shares near 0 and 100 %, too.
 */
struct interval confidence_interval(__u64 samples, __u64 total);

#endif
