/* ctl_split.c - a count that is shared out loses nothing */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "profilctl/split.h"

Test(ctl_split, shares_by_weight)
{
	__u64 share[3];

	split(100, (__u32[]){ 1, 2, 1 }, 3, share);
	cr_expect_eq(share[0], 25);
	cr_expect_eq(share[1], 50);
	cr_expect_eq(share[2], 25);
}

Test(ctl_split, the_largest_remainder_gets_the_odd_tick)
{
	__u64 share[3];

	split(10, (__u32[]){ 1, 1, 2 }, 3, share); /* 2.5, 2.5, 5 */
	cr_expect_eq(share[0], 3);
	cr_expect_eq(share[1], 2);
	cr_expect_eq(share[2], 5);
	split(1, (__u32[]){ 3, 4, 3 }, 3, share);
	cr_expect_eq(share[1], 1);
}

Test(ctl_split, no_weight_at_all_goes_to_the_first)
{
	__u64 share[2];

	split(7, (__u32[]){ 0, 0 }, 2, share);
	cr_expect_eq(share[0], 7);
	cr_expect_eq(share[1], 0);
}

Test(ctl_split, no_weight_gets_nothing)
{
	__u64 share[3];

	split(~0ull, (__u32[]){ 0, 3, 4 }, 3, share);
	cr_expect_eq(share[0], 0);
	cr_expect_eq(share[1] + share[2], ~0ull);
}

/* Whatever is shared adds up, and nobody is further from his due than one tick. */
Test(ctl_split, adds_up)
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
