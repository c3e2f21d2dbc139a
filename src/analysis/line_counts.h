/* line_counts.h - the samples of a function by source line */
#ifndef PROFIL_ANALYSIS_LINE_COUNTS_H
#define PROFIL_ANALYSIS_LINE_COUNTS_H

#include "listing.h"
#include "sample_location.h"

/* The samples on a source line. */
struct tally {
	const char *file;
	int line;
	__u64 samples;
};

/*
 * The lines of @f by file and number, in an array of *@n that the caller frees; file names are
 * valid as long as @s. NULL: out of memory.
 */
struct tally *tally_lines(const struct spots *s, const struct function *f, size_t *n);

/* The functions inlined into @f, most samples first; @file is the function's name, @line is 0. */
struct tally *tally_inlined(const struct spots *s, const struct function *f, size_t *n);

/* Calls @show for each file of @t, with its lines. */
void tally_files(const struct tally *t, size_t n,
		 void (*show)(void *ctx, const struct tally *t, size_t n), void *ctx);

/*
 * Lists the source file of @t, the @n lines with samples of one file. If it cannot be read the
 * listing has these lines only, without text. Returns 0 or -ENOMEM. listing_fini() in any case.
 */
int tally_listing(struct listing *out, const struct tally *t, size_t n);

#endif
