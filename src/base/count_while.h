/* count_while.h - binary search in a sorted array */
#ifndef PROFIL_BASE_COUNT_WHILE_H
#define PROFIL_BASE_COUNT_WHILE_H

#include <stddef.h>

/*
 * How many of @n elements, from the first on, satisfy @condition, an expression of the index @i.
 * None behind the first that does not satisfy it may.
 */
#define COUNT_WHILE(n, i, condition)                          \
	__extension__({                                       \
		size_t low_ = 0, high_ = (n);                 \
                                                              \
		while (low_ < high_) {                        \
			size_t i = low_ + (high_ - low_) / 2; \
                                                              \
			if (condition)                        \
				low_ = i + 1;                 \
			else                                  \
				high_ = i;                    \
		}                                             \
		low_;                                         \
	})

#endif
