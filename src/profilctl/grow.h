/* grow.h - arrays that get one element more at a time */
#ifndef PROFIL_GROW_H
#define PROFIL_GROW_H

#include <stdlib.h>

/* Returns @array with room for element @n, growing in powers of two; NULL: it is as it was. */
static inline void *grow(void *array, size_t n, size_t size)
{
	return n & (n - 1) ? array : reallocarray(array, n ? 2 * n : 1, size);
}

#endif
