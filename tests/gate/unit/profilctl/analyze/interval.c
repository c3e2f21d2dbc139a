/* interval.c - Wilson's interval, against values that were computed by hand */
#include <criterion/criterion.h>

#include "profile/confidence.h"

static void is(__u64 samples, __u64 total, double low, double high)
{
	struct interval i = confidence_interval(samples, total);

	cr_expect_float_eq(i.low, low, 0.01, "%llu of %llu: low %f", samples, total, i.low);
	cr_expect_float_eq(i.high, high, 0.01, "%llu of %llu: high %f", samples, total, i.high);
}

Test(ctl_interval, matches_values_computed_by_hand)
{
	is(0, 10, 0, 27.75);
	is(10, 10, 72.25, 100);
	is(50, 100, 40.38, 59.62);
	is(1, 1000, 0.02, 0.56);
	is(0, 0, 0, 100);
}
