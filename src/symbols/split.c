/* split.c - divides a count in proportion to weights, in whole samples */
#include <assert.h>

#include "split.h"

void split(__u64 count, const __u32 *weight, size_t n, __u64 *share)
{
	__u64 rest[SPLIT_MAX], sum = 0, left = count;

	assert(n >= 1 && n <= SPLIT_MAX);
	for (size_t i = 0; i < n; i++)
		sum += weight[i];
	for (size_t i = 0; i < n; i++) {
		unsigned __int128 product = (unsigned __int128)count * weight[i];

		share[i] = sum ? (__u64)(product / sum) : i ? 0 : count;
		rest[i] = sum ? (__u64)(product % sum) : 0;
		left -= share[i];
	}
	for (; left; left--) {
		size_t best = 0;

		for (size_t i = 1; i < n; i++) {
			if (rest[i] > rest[best])
				best = i;
		}
		share[best]++;
		rest[best] = 0;
	}
}
