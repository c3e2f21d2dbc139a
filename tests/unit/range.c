/* range.c - runs of numbers are handed out once, lowest first, and come back */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profild/range.h"

#define SIZE 256

/* The same by the obvious means: a byte for each number. */
static int lowest(const uint8_t *taken, uint32_t from, uint32_t n, uint32_t align)
{
	for (uint32_t first = from; first + n <= SIZE; first += align) {
		if (!memchr(taken + first, 1, n))
			return (int)first;
	}
	return -ENOSPC;
}

Test(range, is_a_byte_for_each_number)
{
	uint32_t run[SIZE][2], nruns = 0, first, refused = 0;
	uint8_t taken[SIZE] = { 0 };
	struct range *r;

	srandom(1);
	cr_assert_eq(range_new(&r, SIZE), 0);
	for (int i = 0; i < 100000; i++) {
		uint32_t n = 1 + (uint32_t)random() % 24, align = 1u << random() % 4;

		if (random() % 2 && nruns) {
			uint32_t k = (uint32_t)random() % nruns;

			range_give(r, run[k][0], run[k][1]);
			memset(taken + run[k][0], 0, run[k][1]);
			memcpy(run[k], run[--nruns], sizeof(run[k]));
			continue;
		}
		if (random() % 4) {
			uint32_t from = (uint32_t)random() % SIZE / align * align;
			int want = lowest(taken, from, n, align);
			int err = range_take_from(r, from, n, align, &first);

			cr_assert_eq(err ? err : (int)first, want);
			refused += err != 0;
			if (err)
				continue;
		} else {
			first = (uint32_t)random() % (SIZE - n);
			cr_assert_eq(range_take_at(r, first, n),
				     memchr(taken + first, 1, n) ? -EEXIST : 0);
			if (memchr(taken + first, 1, n))
				continue;
		}
		memset(taken + first, 1, n);
		run[nruns][0] = first;
		run[nruns++][1] = n;
	}
	cr_assert_gt(refused, 0);
	range_free(r);
}

Test(range, nothing_takes_nothing)
{
	uint32_t first = 7;
	struct range *r;

	cr_assert_eq(range_new(&r, 1), 0);
	cr_expect_eq(range_take(r, 0, 1, &first), 0);
	cr_expect_eq(first, 0);
	range_give(r, 0, 0);
	cr_expect_eq(range_take(r, 1, 1, &first), 0);
	cr_expect_eq(range_take(r, 1, 1, &first), -ENOSPC);
	cr_expect_eq(range_take_at(r, 1, 1), -EINVAL);
	range_free(r);
}
