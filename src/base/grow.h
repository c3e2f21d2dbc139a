/* grow.h - arrays to which elements are added one at a time */
#ifndef PROFIL_BASE_GROW_H
#define PROFIL_BASE_GROW_H

#include <stdlib.h>

/*
 * Returns @array with room for element @n, reallocated at powers of two. NULL: out of memory,
 * @array is unchanged.
 */
static inline void *grow(void *array, size_t n, size_t size)
{
	return n & (n - 1) ? array : reallocarray(array, n ? 2 * n : 1, size);
}

#endif
