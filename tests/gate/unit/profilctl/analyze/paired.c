/* paired.c - times taken in turns differ where a distribution-free interval says so */
#include <criterion/criterion.h>

#include "analysis/paired.h"

/* @n rounds, of which the i-th has become 1 + i * @step of what it was, on a machine that changes.
 */
static struct paired compare(double step, double from, size_t n)
{
	struct round round[64];
	struct paired p;

	for (size_t i = 0; i < n; i++) {
		double was = i % 3 ? 1 : 7;

		round[i] = (struct round){ was, was * (from + step * (double)i) };
	}
	cr_assert_eq(paired_compare(&p, round, n), 0);
	return p;
}

/* The order statistics of the sign test at 99 %: of 21 rounds the 5th and the 17th. */
Test(ctl_paired, the_interval_is_that_of_the_sign_test)
{
	struct paired p = compare(0.01, 0.5, 21);

	cr_expect_float_eq(p.ratio, 0.6, 1e-9);
	cr_expect_float_eq(p.low, 0.54, 1e-9);
	cr_expect_float_eq(p.high, 0.66, 1e-9);
	p = compare(0.01, 0.5, 31); /* the 8th and the 24th */
	cr_expect_float_eq(p.low, 0.57, 1e-9);
	cr_expect_float_eq(p.high, 0.73, 1e-9);
}

/* The fewest rounds prove a difference only if all agree: 2 of 2^8. */
Test(ctl_paired, the_fewest_rounds_need_all_of_them)
{
	struct paired p = compare(0.01, 0.9, PAIRED_ROUNDS_MIN);

	cr_expect_float_eq(p.low, 0.9, 1e-9);
	cr_expect_float_eq(p.high, 0.97, 1e-9);
	cr_expect_float_eq(p.ratio, 0.935, 1e-9);
	cr_expect_float_eq(p.before_s, 1, 1e-9);
}

Test(ctl_paired, equal_times_do_not_differ)
{
	struct paired p = compare(0, 1, 21);

	cr_expect_float_eq(p.low, 1, 1e-9);
	cr_expect_float_eq(p.high, 1, 1e-9);
}
