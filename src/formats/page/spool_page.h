/* spool_page.h - the page of profil-http: the flame graph of a span of time, or of two */
#ifndef PROFIL_FORMATS_PAGE_SPOOL_PAGE_H
#define PROFIL_FORMATS_PAGE_SPOOL_PAGE_H

#include <stdio.h>

#include "analysis/interval_sums.h"

/* The kinds of what ran by which the page selects. */
extern const enum rows_by spool_page_kinds[];
#define SPOOL_PAGE_KINDS 5

/* An interval of the spool. */
struct spool_strip {
	time_t start, seconds;
	double cpus; /* in use; negative: not known yet */
};

struct spool_page {
	const char *host;
	const struct spool_strip *strip; /* sorted by start */
	size_t nstrip;
	const struct sums_choice *choice; /* one, or two for comparison: after, before */
	const struct sums_range *range;	  /* likewise */
	size_t spans;
	bool latest;		  /* the span is the newest one, whatever the time is */
	size_t intervals, unread; /* of the spans, and how many of them are still to be read */
	size_t too_old;		  /* profiles of the spans for which there is no room */
	const char *notice;	  /* above the graph; NULL: none */
	const char *trouble;	  /* why there is nothing to be shown; NULL: there is */
};

/*
 * Writes the page, whose style sheet is spool_page_styles() and whose scripts are page_js[],
 * strip_js[], flame_js[] and spool_js[]. Returns 0 or -ENOMEM.
 */
int spool_page_write(FILE *out, const struct spool_page *s);

void spool_page_styles(FILE *out);

extern const char spool_js[];

#endif
