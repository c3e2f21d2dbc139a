/* split.h - divides a count in proportion to weights, in whole samples */
#ifndef PROFIL_SYMBOLS_SPLIT_H
#define PROFIL_SYMBOLS_SPLIT_H

#include <stddef.h>
#include <linux/types.h>

#define SPLIT_MAX 512 /* functions of 16 bytes in a page, each with padding behind it */

/*
 * Divides @count into @n shares (1 to SPLIT_MAX) in proportion to @weight, by largest remainder (of
 * equals, the first), so that they add up to @count. If all weights are 0 the first share is
 * @count.
 */
void split(__u64 count, const __u32 *weight, size_t n, __u64 *share);

#endif
