/* split.c - the shares of a split count add up to it */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "symbols/split.h"

Test(ctl_split, shares_by_weight)
{
	__u64 share[3];

	split(100, (__u32[]){ 1, 2, 1 }, 3, share);
	cr_expect_eq(share[0], 25);
	cr_expect_eq(share[1], 50);
	cr_expect_eq(share[2], 25);
}

Test(ctl_split, gives_the_odd_tick_to_the_largest_remainder)
{
	__u64 share[3];

	split(10, (__u32[]){ 1, 1, 2 }, 3, share); /* 2.5, 2.5, 5 */
	cr_expect_eq(share[0], 3);
	cr_expect_eq(share[1], 2);
	cr_expect_eq(share[2], 5);
	split(1, (__u32[]){ 3, 4, 3 }, 3, share);
	cr_expect_eq(share[1], 1);
}

Test(ctl_split, gives_all_to_the_first_without_weights)
{
	__u64 share[2];

	split(7, (__u32[]){ 0, 0 }, 2, share);
	cr_expect_eq(share[0], 7);
	cr_expect_eq(share[1], 0);
}

Test(ctl_split, gives_nothing_to_weight_0)
{
	__u64 share[3];

	split(~0ull, (__u32[]){ 0, 3, 4 }, 3, share);
	cr_expect_eq(share[0], 0);
	cr_expect_eq(share[1] + share[2], ~0ull);
}

/* The shares add up, and each differs from its exact value by less than one tick. */
Test(ctl_split, shares_add_up_to_the_count)
{
	srand(1);
	for (int i = 0; i < 20000; i++) {
		size_t n = 1 + (size_t)rand() % SPLIT_MAX;
		__u64 share[SPLIT_MAX], sum = 0, count = (__u64)rand() >> rand() % 31;
		__u32 weight[SPLIT_MAX];
		double all = 0;

		for (size_t k = 0; k < n; k++) {
			weight[k] = (__u32)(rand() >> rand() % 31);
			all += weight[k];
		}
		split(count, weight, n, share);
		for (size_t k = 0; k < n; k++) {
			double due = all > 0 ? (double)count * weight[k] / all : k ? 0 : count;

			sum += share[k];
			cr_assert_lt((double)share[k] - due, 1.000001);
			cr_assert_gt((double)share[k] - due, -1.000001);
		}
		cr_assert_eq(sum, count);
	}
}
