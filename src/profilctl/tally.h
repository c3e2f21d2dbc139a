/* tally.h - the samples of a function, line by line */
#ifndef PROFIL_TALLY_H
#define PROFIL_TALLY_H

#include "spots.h"

/* So many samples on a line of source. */
struct tally {
	const char *file;
	int line;
	__u64 samples;
};

/*
 * The lines of @f in order, file by file, in an array of *@n that the caller frees; the names live
 * as long as @s. NULL: for want of memory.
 */
struct tally *tally_lines(const struct spots *s, const struct function *f, size_t *n);

/* The functions that were inlined in @f, most samples first: they stand for files, without a line.
 */
struct tally *tally_inlined(const struct spots *s, const struct function *f, size_t *n);

/* Calls @show for each file, with its @n lines. */
void tally_files(const struct tally *t, size_t n,
		 void (*show)(void *ctx, const struct tally *t, size_t n), void *ctx);

/*
 * Calls @show for each line of the file of @t that is worth showing: those with samples, and what
 * stands around them. @line 0: something was left out here. @text is NULL where the file cannot be
 * read. Returns 0, or why it could not.
 */
int tally_source(const struct tally *t, size_t n,
		 void (*show)(void *ctx, int line, const char *text, __u64 samples), void *ctx);

#endif
