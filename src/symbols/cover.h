/* cover.h - resolves ranges that claim the same addresses into ranges that do not overlap */
#ifndef PROFIL_SYMBOLS_COVER_H
#define PROFIL_SYMBOLS_COVER_H

#include <stddef.h>
#include <linux/types.h>

/* [start, end) belongs to @owner; @rank decides between claims: the highest wins. */
struct claim {
	__u64 start;
	__u64 end;
	__u64 rank;
	size_t owner;
};

/*
 * Replaces the @n claims by at most 2 * n - 1 that do not overlap, sorted by address: each address
 * goes to the claim of the highest rank that covers it. @claim must have room for 2 * n and is
 * sorted by this function. Returns 0 or -ENOMEM.
 */
int cover(struct claim *claim, size_t *n);

/* How many of the @n claims that cover() made start at or before @address. */
size_t cover_upto(const struct claim *claim, size_t n, __u64 address);

#endif
