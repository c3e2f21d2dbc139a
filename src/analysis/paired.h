/* paired.h - whether a program has become faster: times that were taken in turns */
#ifndef PROFIL_ANALYSIS_PAIRED_H
#define PROFIL_ANALYSIS_PAIRED_H

#include <stddef.h>

/* Fewer rounds cannot tell a difference from chance. */
#define PAIRED_ROUNDS_MIN 8

/* Times are compared within their round, since a machine changes from one to the next. */
struct round {
	double before_s;
	double after_s;
};

/* What the time has become, as a ratio of what it was: 0.9 is a tenth less. */
struct paired {
	double before_s; /* medians */
	double after_s;
	double ratio;
	/*
	 * The 99 % confidence interval of the median ratio. It is one of order statistics (of the
	 * sign test), which assumes nothing about how times are distributed.
	 */
	double low;
	double high;
};

/* Compares @n rounds, at least PAIRED_ROUNDS_MIN. Returns 0 or -ENOMEM. */
int paired_compare(struct paired *out, const struct round *round, size_t n);

#endif
