/* split.h - shares a count out in whole ticks */
#ifndef PROFIL_SPLIT_H
#define PROFIL_SPLIT_H

#include <stddef.h>
#include <linux/types.h>

#define SPLIT_MAX 64

/*
 * Shares @count out among @n (1 to SPLIT_MAX) in proportion to @weight, by largest remainder (of
 * equals, the first), so that @share adds up to @count. Where all weights are 0 the first gets all.
 */
void split(__u64 count, const __u32 *weight, size_t n, __u64 *share);

#endif
