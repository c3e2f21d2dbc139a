/* series.c - counters of a limited number of names never decrease and add up to all samples */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "profil-http/answers/series.h"

#define NAMES 300

static __u64 sum(const struct series *s)
{
	__u64 n = s->other;

	for (size_t i = 0; i < s->n; i++)
		n += s->one[i].samples;
	return n;
}

Test(http_series, adds_up_counters_of_one_name)
{
	struct amount a[] = { { "b", 3 }, { "a", 5 }, { "b", 4 } };
	struct series s = { 0 };

	cr_assert_eq(series_update(&s, a, 3, 12, 1), 0);
	cr_assert_eq(s.n, 2);
	cr_assert_str_eq(s.one[0].name, "b");
	cr_assert_eq(s.one[0].samples, 7);
	cr_assert_eq(s.one[1].samples, 5);
	cr_assert_eq(s.other, 0);
	series_fini(&s);
}

Test(http_series, counts_small_names_as_others_until_they_grow)
{
	struct amount first[] = { { "a", 50 } };
	struct amount small[] = { { "a", 60 }, { "b", 9 } };
	struct amount large[] = { { "a", 60 }, { "b", 30 } };
	struct amount later[] = { { "a", 60 }, { "b", 35 } };
	struct series s = { 0 };

	cr_assert_eq(series_update(&s, first, 1, 50, 1), 0);
	cr_assert_eq(series_update(&s, small, 2, 69, 10), 0);
	cr_assert_eq(s.n, 1);
	cr_assert_eq(s.other, 9);
	cr_assert_eq(series_update(&s, large, 2, 90, 10), 0);
	cr_assert_eq(s.n, 2);
	cr_assert_eq(s.other, 30);
	cr_assert_eq(s.one[1].samples, 0);
	cr_assert_eq(series_update(&s, later, 2, 95, 10), 0);
	cr_assert_eq(s.other, 30);
	cr_assert_eq(s.one[1].samples, 5);
	series_fini(&s);
}

/* More names than series, which appear at different times and grow at different rates. */
Test(http_series, never_decreases_and_adds_up_to_all_samples)
{
	struct amount a[NAMES];
	struct series s = { 0 };
	char name[NAMES][8];
	__u64 before[SERIES_MAX] = { 0 }, other = 0;

	for (unsigned int round = 1; round <= 40; round++) {
		__u64 total = 0;
		size_t n = 0;

		for (unsigned int i = 0; i < NAMES; i++) {
			__u64 samples = round > i % 37 ? (round - i % 37) * (i * 7919 % 101) : 0;

			snprintf(name[i], sizeof(name[i]), "%u", i);
			if (samples)
				a[n++] = (struct amount){ name[i], samples };
			total += samples;
		}
		cr_assert_eq(series_update(&s, a, n, total, round == 1 ? 1 : 200), 0);
		cr_assert_leq(s.n, SERIES_MAX);
		cr_assert_eq(sum(&s), total, "round %u: %llu, not %llu", round, sum(&s), total);
		cr_assert_geq(s.other, other);
		other = s.other;
		for (size_t i = 0; i < s.n; i++) {
			cr_assert_geq(s.one[i].samples, before[i]);
			before[i] = s.one[i].samples;
		}
	}
	cr_assert_eq(s.n, SERIES_MAX);
	series_fini(&s);
}
