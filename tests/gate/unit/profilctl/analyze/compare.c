/* compare.c - significant changes are found, and noise is not reported as a change */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare.h"

#define FUNCTIONS 20

/* A profile of @ticks random samples, each in function i with probability weight[i]. */
static struct profile *draw(const double *weight, int ticks)
{
	struct profile *p = profile_new();
	__u64 samples[FUNCTIONS] = { 0 };
	__u32 object;
	double sum = 0;

	for (int i = 0; i < FUNCTIONS; i++)
		sum += weight[i];
	for (int t = 0; t < ticks; t++) {
		double at = drand48() * sum;
		int i = 0;

		while (i < FUNCTIONS - 1 && at >= weight[i])
			at -= weight[i++];
		samples[i]++;
	}
	cr_assert_eq(profile_add_object(p, "/bin/a", 0, 0, -1, &object), 0);
	for (int i = 0; i < FUNCTIONS; i++) {
		struct function f = { .offset = (__u64)i * 64, .size = 64, .samples = samples[i] };

		cr_assert(asprintf(&f.name, "f%d", i) > 0);
		cr_assert_eq(profile_add_function(p, &f), 0);
	}
	p->binned = (__u64)ticks;
	p->total = p->binned;
	return p;
}

static void weights(double *weight)
{
	for (int i = 0; i < FUNCTIONS; i++)
		weight[i] = 1.0 / (i + 1);
}

Test(ctl_compare, reports_a_change_of_equal_work_in_at_most_5_of_100)
{
	double weight[FUNCTIONS];
	int found = 0;

	srand48(1);
	weights(weight);
	for (int trial = 0; trial < 100; trial++) {
		struct profile *a = draw(weight, 2000), *b = draw(weight, 3000);
		struct changes c;

		cr_assert_eq(compare_init(&c, a, b), 0);
		cr_expect_eq(c.tested, FUNCTIONS);
		found += c.significant > 0;
		compare_fini(&c);
		profile_free(a);
		profile_free(b);
	}
	cr_expect_leq(found, 5, "%d of 100", found);
}

/* A table has one answer: what changed is what has an interval without 0. */
Test(ctl_compare, judges_by_the_intervals_that_it_shows)
{
	static const int size[] = { 5, 30, 200, 2000, 20000 };
	double weight[FUNCTIONS], other[FUNCTIONS];

	srand48(3);
	weights(weight);
	for (int trial = 0; trial < 50; trial++) {
		struct profile *a, *b;
		struct changes c;
		size_t significant = 0;

		for (int i = 0; i < FUNCTIONS; i++)
			other[i] = weight[i] * (trial % 2 ? 1 : 0.5 + drand48());
		a = draw(weight, size[trial % 5]);
		b = draw(other, size[trial / 5 % 5]);
		cr_assert_eq(compare_init(&c, a, b), 0);
		for (size_t i = 0; i < c.n; i++) {
			const struct change *o = &c.change[i];

			cr_expect_eq(o->significant, o->low > 0 || o->high < 0, "trial %d: %s",
				     trial, o->name);
			significant += o->significant;
		}
		cr_expect_eq(significant, c.significant);
		compare_fini(&c);
		profile_free(a);
		profile_free(b);
	}
}

Test(ctl_compare, finds_a_function_that_takes_longer)
{
	double weight[FUNCTIONS], slower[FUNCTIONS];
	struct profile *a, *b;
	struct changes c;

	srand48(2);
	weights(weight);
	memcpy(slower, weight, sizeof(slower));
	slower[3] *= 1.5;
	a = draw(weight, 20000);
	b = draw(slower, 20000);
	cr_assert_eq(compare_init(&c, a, b), 0);
	cr_assert_geq(c.significant, 1);
	cr_expect_str_eq(c.change[0].name, "f3");
	cr_expect_gt(c.change[0].low, 0);
	compare_fini(&c);
	profile_free(a);
	profile_free(b);
}

Test(ctl_compare, counts_a_missing_function_as_zero)
{
	double weight[FUNCTIONS] = { 1, 1 }, without[FUNCTIONS] = { 1 };
	struct profile *a = draw(weight, 1000), *b = draw(without, 1000);
	struct changes c;

	cr_assert_eq(compare_init(&c, a, b), 0);
	cr_assert_eq(c.significant, 2);
	cr_expect_eq(c.change[0].samples[0] + c.change[1].samples[0], 1000);
	cr_expect_eq(c.change[0].samples[1] + c.change[1].samples[1], 1000);
	compare_fini(&c);
	profile_free(a);
	profile_free(b);
}

/* A profile of @rare samples in "rare", of 1000. */
static struct profile *with_rare(__u64 rare)
{
	struct profile *p = profile_new();
	struct function f = { .name = strdup("rare"), .size = 64, .samples = rare };
	struct function rest = {
		.name = strdup("rest"), .offset = 64, .size = 64, .samples = 1000 - rare
	};

	cr_assert_eq(profile_add_object(p, "/bin/a", 0, 0, -1, &f.object), 0);
	cr_assert_eq(profile_add_function(p, &f), 0);
	cr_assert_eq(profile_add_function(p, &rest), 0);
	p->binned = p->total = 1000;
	return p;
}

/* With 9 samples against none, three standard errors are no proof; with 10 they are. */
Test(ctl_compare, finds_no_change_of_fewer_than_10_samples)
{
	for (__u64 rare = 9; rare <= 10; rare++) {
		struct profile *a = with_rare(rare), *b = with_rare(0);
		const struct change *o;
		struct changes c;

		cr_assert_eq(compare_init(&c, a, b), 0);
		cr_expect_eq(c.tested, rare == 9 ? 1 : 2);
		cr_expect_eq(c.significant, c.tested);
		o = strcmp(c.change[0].name, "rare") ? &c.change[1] : &c.change[0];
		cr_expect_eq(o->significant, rare == 10);
		cr_expect_eq(o->high >= 0, rare == 9);
		cr_expect_eq(o->p >= 1, rare == 9);
		compare_fini(&c);
		profile_free(a);
		profile_free(b);
	}
}
