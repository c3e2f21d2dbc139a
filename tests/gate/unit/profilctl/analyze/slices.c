/* slices.c - merging of time slices loses no sample */
#include <criterion/criterion.h>

#include "analysis/time_slices.h"

/* One function has samples at all times, another one in the second half only. */
static struct profile *at(const struct profile *whole, __u64 time, __u64 end)
{
	struct profile *now = profile_borrow(whole);

	cr_assert_eq(profile_add_place(now, 0, 0x1000, 1, time), 0);
	cr_assert_eq(profile_add_place(now, 0, 0x2000, 1, time > end / 2 ? time - end / 2 : 0), 0);
	return now;
}

static void run(__u64 end, size_t max, size_t expected, __u64 expected_ns)
{
	struct profile *whole = profile_new();
	struct symbolize_cache cache = { 0 };
	struct slices s;
	__u32 object;
	__u64 sum[2] = { 0 };

	cr_assert_eq(profile_add_object(whole, "/bin/a", 1, 1, -1, &object), 0);
	cr_assert_eq(slices_init(&s, max, 1), 0);
	for (__u64 time = 1; time <= end; time++) {
		if (time >= slices_next_ns(&s))
			cr_assert_eq(slices_take(&s, at(whole, time, end)), 0);
	}
	profile_add_place(whole, 0, 0x1000, 1, end);
	profile_add_place(whole, 0, 0x2000, 1, end / 2);
	cr_assert_eq(symbolize(whole, &cache), 0);
	cr_assert_eq(slices_into(&s, whole, &cache), 0);
	cr_expect_eq(whole->nslices, expected, "%zu", whole->nslices);
	cr_expect_eq(whole->slice_ns, expected_ns, "%llu", whole->slice_ns);
	for (size_t f = 0; f < 2; f++) {
		for (size_t i = 0; i < whole->nslices; i++)
			sum[f] += whole->functions[f].slices[i];
		cr_expect_eq(sum[f], whole->functions[f].samples);
	}
	cr_expect_eq(whole->functions[1].slices[0], 0, "it was not hot at first");
	slices_fini(&s);
	symbolize_cache_fini(&cache);
	profile_free(whole);
}

Test(ctl_slices, keep_their_length_while_they_fit)
{
	run(6, 8, 6, 1);
}

Test(ctl_slices, merge_when_they_are_full)
{
	run(8, 8, 4, 2);
	run(1024, 8, 4, 256);
	run(48, 6, 3, 16);
}
