/* counts.h - looking through many counts of which few are not 0 */
#ifndef PROFIL_COUNTS_H
#define PROFIL_COUNTS_H

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
