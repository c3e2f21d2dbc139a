/* sparse.h - scans arrays of counts, most of which are 0 */
#ifndef PROFIL_BASE_SPARSE_H
#define PROFIL_BASE_SPARSE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline bool any_of_eight(const uint32_t *count)
{
	uint64_t two[4];

	memcpy(two, count, sizeof(two));
	return two[0] | two[1] | two[2] | two[3];
}

#endif
