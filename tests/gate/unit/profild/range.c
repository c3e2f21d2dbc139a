/* range.c - runs of numbers are handed out once, the lowest or highest free one, and reused */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "profild/bpf/counters/range_alloc.h"

#define SIZE 256

/* The reference implementation: a byte for each number. */
static int lowest(const uint8_t *taken, uint32_t n)
{
	for (uint32_t first = 0; first + n <= SIZE; first++) {
		if (!memchr(taken + first, 1, n))
			return (int)first;
	}
	return -ENOSPC;
}

static int highest(const uint8_t *taken, uint32_t n)
{
	for (uint32_t first = SIZE - n + 1; first-- > 0;) {
		if (!memchr(taken + first, 1, n))
			return (int)first;
	}
	return -ENOSPC;
}

Test(range, hands_out_each_number_once)
{
	uint32_t run[SIZE][2], nruns = 0, first, refused = 0;
	uint8_t taken[SIZE] = { 0 };
	struct range *r;

	srandom(1);
	cr_assert_eq(range_new(&r, SIZE), 0);
	for (int i = 0; i < 100000; i++) {
		uint32_t n = 1 + (uint32_t)random() % 24;

		if (random() % 2 && nruns) {
			uint32_t k = (uint32_t)random() % nruns;

			range_give(r, run[k][0], run[k][1]);
			memset(taken + run[k][0], 0, run[k][1]);
			memcpy(run[k], run[--nruns], sizeof(run[k]));
			continue;
		}
		if (random() % 4) {
			bool last = random() % 4 == 0;
			int want = last ? highest(taken, n) : lowest(taken, n);
			int err = last ? range_take_last(r, n, &first) : range_take(r, n, &first);

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

Test(range, a_run_of_zero_takes_no_number)
{
	uint32_t first = 7;
	struct range *r;

	cr_assert_eq(range_new(&r, 1), 0);
	cr_expect_eq(range_take(r, 0, &first), 0);
	cr_expect_eq(first, 0);
	cr_expect_eq(range_take_last(r, 0, &first), 0);
	range_give(r, 0, 0);
	cr_expect_eq(range_take(r, 1, &first), 0);
	cr_expect_eq(range_take(r, 1, &first), -ENOSPC);
	cr_expect_eq(range_take_at(r, 1, 1), -EINVAL);
	range_free(r);
}
