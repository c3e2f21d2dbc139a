/* interval_sums.c - sums of intervals over spans of time, by what ran and by language */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/interval_sums.h"

#define LATER ((time_t)1 << 40)

static __u32 object(struct profile *p, const char *path)
{
	__u32 index;

	cr_assert_eq(profile_add_object(p, path, 0, 0, -1, &index), 0);
	return index;
}

static __u32 group(struct profile *p, const char *command, const char *unit)
{
	struct group g = { .command = strdup(command), .unit = strdup(unit) };
	__u32 index;

	cr_assert(asprintf(&g.cgroup, "/system.slice/%s", unit) > 0);
	cr_assert_eq(profile_add_group(p, &g, &index), 0);
	return index;
}

static void function(struct profile *p, __u32 of, const char *name, __u64 offset, __u64 samples)
{
	struct function f = {
		.name = strdup(name), .object = of, .offset = offset, .samples = samples
	};

	cr_assert_eq(profile_add_function(p, &f), 0);
	cr_assert_eq(profile_add_place(p, of, offset + 4, 1, samples), 0);
}

static void run(struct profile *p, __u32 of, __u32 ran, __u64 samples)
{
	struct place place = { .object = of, .group = ran, .count = samples };

	cr_assert_eq(places_add(&p->sums, &place), 0);
}

/* web.service alone runs /bin/web; it and db.service run libc; n samples of each function. */
static struct profile *minute(__u64 n)
{
	struct profile *p = profile_new();
	__u32 web = object(p, "/bin/web"), libc = object(p, "/lib/libc.so.6");
	__u32 python = object(p, "python");
	__u32 of_web = group(p, "web", "web.service"), of_db = group(p, "db", "db.service");

	p->command = strdup("the whole machine");
	p->tick_ns = 10000000;
	p->duration_ns = 60000000000;
	function(p, web, "serve", 16, n);
	function(p, web, "parse", 64, 2 * n);
	function(p, libc, "malloc", 16, 4 * n);
	function(p, python, "query", 8, 8 * n);
	run(p, web, of_web, 3 * n);
	run(p, libc, of_web, n);
	run(p, libc, of_db, 3 * n);
	run(p, python, of_db, 8 * n);
	p->unmatched = 5;
	p->lost = 2;
	p->total = p->binned + 7;
	return p;
}

static void add(struct interval_sums *s, struct profile *p, time_t start)
{
	cr_assert_eq(interval_sums_add(s, p, start, 60), 0);
	profile_free(p);
}

static __u64 samples_of(const struct profile *p, const char *name)
{
	__u64 sum = 0;

	for (size_t i = 0; i < p->nfunctions; i++) {
		if (!strcmp(p->functions[i].name, name))
			sum += p->functions[i].samples;
	}
	return sum;
}

static struct sums_range range(const struct interval_sums *s, const struct sums_choice *c)
{
	struct sums_range r;

	cr_assert_eq(interval_sums_range(&r, s, c), 0);
	return r;
}

static struct interval_sums three(void)
{
	struct interval_sums s = { 0 };

	add(&s, minute(100), 120);
	add(&s, minute(1), 0);
	add(&s, minute(10), 60);
	return s;
}

Test(interval_sums, adds_intervals_with_their_middle_in_the_span)
{
	struct interval_sums s = three();
	struct sums_range r = range(&s, &(struct sums_choice){ .since = 31, .until = 151 });

	cr_expect_eq(r.intervals, 2);
	cr_expect_eq(r.profile->total, 110 * 15 + 14, "%llu", r.profile->total);
	cr_expect_eq(r.profile->binned, 110 * 15);
	cr_expect_eq(r.profile->unmatched, 10);
	cr_expect_eq(r.profile->lost, 4);
	cr_expect_eq(r.profile->started, 60);
	cr_expect_eq(samples_of(r.profile, "parse"), 220);
	cr_expect_eq(call_tree_sum(&r.profile->calls), 110 * 15,
		     "a function is a stack below its file");
	sums_range_fini(&r);
	interval_sums_fini(&s);
}

Test(interval_sums, gives_a_unit_the_functions_that_it_alone_ran)
{
	struct interval_sums s = three();
	struct sums_choice c = { .until = LATER, .name[ROWS_UNIT] = "web.service" };
	struct sums_range r = range(&s, &c);

	cr_expect_eq(r.profile->total, 111 * 4, "3 n of its own and n of libc");
	cr_expect_eq(samples_of(r.profile, "serve"), 111);
	cr_expect_eq(samples_of(r.profile, "malloc"), 0, "two units called it");
	cr_expect_eq(samples_of(r.profile, SUMS_UNKNOWN), 111);
	cr_expect_eq(call_tree_sum(&r.profile->calls), 111 * 4);
	cr_expect_eq(r.all->total, 111 * 15, "names to choose from are not chosen");
	sums_range_fini(&r);
	c.name[ROWS_UNIT] = "db.service";
	r = range(&s, &c);
	cr_expect_eq(samples_of(r.profile, "query"), 111 * 8);
	cr_expect_eq(samples_of(r.profile, SUMS_UNKNOWN), 111 * 3);
	sums_range_fini(&r);
	c.name[ROWS_COMMAND] = "web";
	r = range(&s, &c);
	cr_expect_eq(r.profile->total, 0, "web does not run in db.service");
	sums_range_fini(&r);
	interval_sums_fini(&s);
}

Test(interval_sums, selects_by_language)
{
	struct interval_sums s = three();
	struct sums_range r =
		range(&s, &(struct sums_choice){ .until = LATER, .language = "python" });

	cr_expect_eq(r.profile->total, 111 * 8);
	cr_expect_eq(samples_of(r.profile, "query"), 111 * 8);
	sums_range_fini(&r);
	interval_sums_fini(&s);
}

/* The frame of the outermost node below the root that has @samples in all. */
static __u64 below(const struct profile *p, const char *name)
{
	const struct call_tree *t = &p->calls;
	__u64 sum = 0;

	for (size_t i = CALL_ROOTS; i < t->n; i++) {
		size_t top = i;

		while (t->node[top].parent >= CALL_ROOTS)
			top = t->node[top].parent;
		if (!strcmp(t->frame[t->node[top].frame].name, name))
			sum += t->node[i].count;
	}
	return sum;
}

Test(interval_sums, puts_stacks_below_their_unit)
{
	struct interval_sums s = three();
	struct sums_range r = range(&s, &(struct sums_choice){ .until = LATER, .by_unit = true });

	cr_expect_eq(below(r.profile, "web.service"), 111 * 4);
	cr_expect_eq(below(r.profile, "db.service"), 111 * 11);
	cr_expect_eq(call_tree_sum(&r.profile->calls), 111 * 15);
	sums_range_fini(&r);
	interval_sums_fini(&s);
}

/* web calls malloc: the leaf's object is libc, which two units ran. */
static struct profile *with_stacks(bool shared)
{
	struct profile *p = minute(10);
	struct call_frame frame[] = { { strdup("serve"), 16, 0 }, { strdup("malloc"), 16, 1 } };
	__u32 at = CALL_WHOLE, index;

	if (!shared)
		places_fini(&p->sums);
	for (__u32 i = 0; i < 2; i++) {
		cr_assert_eq(call_tree_add_frame(&p->calls, &frame[i], &index), 0);
		cr_assert_eq(call_tree_add(&p->calls, at, i, 20, &at), 0);
		p->calls.node[at].frame = index;
	}
	cr_assert_eq(call_tree_count(&p->calls, at, 40), 0);
	return p;
}

Test(interval_sums, has_the_stacks_of_intervals_that_have_some)
{
	struct interval_sums s = { 0 };
	struct sums_choice c = { .until = LATER };
	struct sums_range r;

	add(&s, minute(10), 0);
	add(&s, with_stacks(true), 60);
	r = range(&s, &c);
	cr_expect(r.stacks);
	cr_expect_eq(call_tree_sum(&r.profile->calls), 150 + 40);
	cr_expect_eq(below(r.profile, "serve"), 40);
	sums_range_fini(&r);
	c.name[ROWS_UNIT] = "web.service";
	r = range(&s, &c);
	cr_expect_eq(below(r.profile, "serve"), 0, "libc's samples are of two units");
	cr_expect_eq(r.profile->total, 80);
	sums_range_fini(&r);
	interval_sums_fini(&s);
}

/* malloc below serve in web.service, and alone in db.service, 5 of whose samples have no stack. */
static struct profile *with_groups(void)
{
	static const struct call_node stack[] = {
		{ .object = 0, .offset = 20, .group = 1 },
		{ .object = 1, .offset = 20, .count = 10 },
		{ .object = 1, .offset = 20, .group = 2, .count = 25 }
	};
	struct profile *p = minute(10);
	struct call_frame frame[] = { { strdup("serve"), 16, 0 }, { strdup("malloc"), 16, 1 } };
	__u32 at = CALL_WHOLE, index[2];

	for (int i = 0; i < 2; i++)
		cr_assert_eq(call_tree_add_frame(&p->calls, &frame[i], &index[i]), 0);
	for (int i = 0; i < 3; i++) {
		at = i < 2 ? at : CALL_WHOLE;
		cr_assert_eq(call_tree_add_like(&p->calls, at, &stack[i], &at), 0);
		p->calls.node[at].frame = index[i > 0];
		p->calls.node[at].count = stack[i].count;
	}
	return p;
}

Test(interval_sums, gives_a_unit_its_part_of_a_shared_file_where_stacks_tell)
{
	struct interval_sums s = { 0 };
	struct sums_choice c = { .until = LATER };
	struct sums_range r;

	add(&s, with_groups(), 0);
	r = range(&s, &c);
	cr_expect_eq(samples_of(r.profile, "malloc"), 40);
	cr_expect_eq(r.profile->total, 157);
	sums_range_fini(&r);
	c.name[ROWS_UNIT] = "web.service";
	r = range(&s, &c);
	cr_expect_eq(samples_of(r.profile, "malloc"), 10);
	cr_expect_eq(samples_of(r.profile, SUMS_UNKNOWN), 0);
	cr_expect_eq(r.profile->total, 40);
	cr_expect_eq(below(r.profile, "serve"), 10);
	sums_range_fini(&r);
	c.name[ROWS_UNIT] = "db.service";
	r = range(&s, &c);
	cr_expect_eq(samples_of(r.profile, "malloc"), 25);
	cr_expect_eq(samples_of(r.profile, SUMS_UNKNOWN), 5, "no stack tells of which unit");
	cr_expect_eq(r.profile->total, 110);
	cr_expect_eq(below(r.profile, "serve"), 0);
	sums_range_fini(&r);
	interval_sums_fini(&s);
}

Test(interval_sums, removes_the_oldest)
{
	struct interval_sums s = three();
	struct sums_choice c = { .until = LATER };
	struct sums_range r;

	cr_expect_eq(interval_sums_count(&s, 60, 60), 1);
	interval_sums_remove(&s, 2);
	cr_expect_eq(interval_sums_count(&s, 60, 60), 0);
	r = range(&s, &c);
	cr_expect_eq(r.profile->binned, 1500);
	sums_range_fini(&r);
	interval_sums_remove(&s, 1);
	cr_expect_eq(s.bytes, 0);
	interval_sums_fini(&s);
}

Test(interval_sums, leaves_out_intervals_of_another_rate)
{
	struct interval_sums s = three();
	struct profile *p = minute(1000);
	struct sums_range r;

	p->tick_ns = 1000000;
	add(&s, p, 180);
	r = range(&s, &(struct sums_choice){ .until = LATER });
	cr_expect_eq(r.other_rate, 3);
	cr_expect_eq(r.profile->binned, 15000, "the last one's rate is taken");
	cr_expect_eq(r.profile->tick_ns, 1000000);
	sums_range_fini(&r);
	interval_sums_fini(&s);
}
