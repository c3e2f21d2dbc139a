/* edit_distance.c - the number of typing errors between two words */
#include <stddef.h>
#include <string.h>

#include "edit_distance.h"

/* Longer words are compared by length only. */
#define WORD_MAX 32

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

unsigned int edit_distance(const char *a, const char *b)
{
	unsigned int rows[3][WORD_MAX + 1] = { 0 }, *before = rows[0], *last = rows[1],
					*row = rows[2];
	size_t na = strlen(a), nb = strlen(b);

	if (na > WORD_MAX || nb > WORD_MAX)
		return (unsigned int)(na > nb ? na - nb : nb - na) + 1;

	for (size_t k = 0; k <= nb; k++)
		row[k] = (unsigned int)k;
	for (size_t i = 1; i <= na; i++) {
		unsigned int *next = before;

		before = last;
		last = row;
		row = next;
		row[0] = (unsigned int)i;
		for (size_t k = 1; k <= nb; k++) {
			row[k] = least(least(last[k], row[k - 1]) + 1,
				       last[k - 1] + (a[i - 1] != b[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				row[k] = least(row[k], before[k - 2] + 1);
		}
	}
	return row[nb];
}

bool edit_resembles(const char *typed, const char *name)
{
	size_t n = strlen(typed);

	if (n > 1 && !strncmp(typed, name, n))
		return true;
	return n && edit_distance(typed, name) <= (strlen(name) + 2) / 3;
}
