/* slices.c - the slices of stacks lose no sample, whatever is merged and removed */
#include <criterion/criterion.h>

#include "analysis/time_slices.h"
#include "analysis/view.h"
#include "symbols/symbolize.h"

/* One function has samples at all times, another one, which is called, in the second half only. */
static void count(struct call_tree *t, __u64 time, __u64 end)
{
	__u32 first, caller, second;

	cr_assert_eq(call_tree_add(t, CALL_WHOLE, 0, 0x1000, &first), 0);
	t->node[first].count = time;
	if (time <= end / 2)
		return;
	cr_assert_eq(call_tree_add(t, CALL_WHOLE, 0, 0x1800, &caller), 0);
	cr_assert_eq(call_tree_add(t, caller, 0, 0x2000, &second), 0);
	t->node[second].count = time - end / 2;
}

static __u64 *sums(const struct profile *p)
{
	__u64 *sum = calloc(p->calls.n, sizeof(*sum));

	for (size_t i = 0; i < p->calls.ntimes; i++) {
		cr_assert_lt(p->calls.time[i].slice, p->nslices);
		sum[p->calls.time[i].node] += p->calls.time[i].count;
	}
	return sum;
}

static void expect_all(const struct profile *p)
{
	__u64 *sum = sums(p);

	for (size_t i = 0; i < p->calls.n; i++)
		cr_expect_eq(sum[i], p->calls.node[i].count, "node %zu: %llu of %llu", i, sum[i],
			     p->calls.node[i].count);
	free(sum);
}

static struct profile *recorded(struct slices *s, __u64 end)
{
	struct profile *p = profile_new();
	struct call_tree t = { 0 };
	__u32 object;

	cr_assert_eq(profile_add_object(p, "/bin/a", 1, 1, -1, &object), 0);
	for (__u64 time = 1; time <= end; time++) {
		count(&t, time, end);
		if (time >= slices_next_ns(s))
			cr_assert_eq(slices_take(s, &t), 0);
	}
	/* What came after the last slice, and a thread of which nothing was seen. */
	count(&p->calls, end + 3, end);
	cr_assert_eq(call_tree_count(&p->calls, call_root(CALL_UNREADABLE, CALL_ASLEEP), 7), 0);
	cr_assert_eq(profile_add_place(p, 0, 0x1000, 1, end + 3), 0);
	cr_assert_eq(profile_add_place(p, 0, 0x2000, 1, end + 3 - end / 2), 0);
	p->total = p->binned + 7;
	p->unmatched = 7;
	cr_assert_eq(slices_into(s, &t, p), 0);
	call_tree_fini(&t);
	return p;
}

static void run(__u64 end, size_t max, size_t expected, __u64 expected_ns)
{
	struct slices s = { .max = max, .slice_ns = 1 };
	struct profile *p = recorded(&s, end);
	__u64 quiet = 0;

	cr_expect_eq(p->nslices, expected, "%zu", p->nslices);
	cr_expect_eq(p->slice_ns, expected_ns, "%llu", p->slice_ns);
	expect_all(p);
	for (size_t i = 0; i < p->calls.ntimes; i++) {
		const struct call_time *time = &p->calls.time[i];

		cr_expect(time->node < CALL_ROOTS || p->calls.node[time->node].offset == 0x1000 ||
				  (time->slice + 1) * p->slice_ns > end / 2,
			  "the second function has samples before it ran");
		quiet += time->node < CALL_ROOTS;
	}
	cr_expect_eq(quiet, p->nslices < 7 ? p->nslices : 7, "%llu", quiet);
	slices_fini(&s);
	profile_free(p);
}

Test(ctl_slices, keep_their_length_while_they_fit)
{
	run(6, 8, 7, 1);
}

Test(ctl_slices, merge_when_they_are_full)
{
	run(8, 8, 5, 2);
	run(1024, 8, 5, 256);
	run(48, 6, 4, 16);
}

/* The estimate of a sleep that has not ended is corrected at its end. */
Test(ctl_slices, take_back_what_was_too_much)
{
	struct slices s = { .max = 8, .slice_ns = 1 };
	struct profile *p = profile_new();
	struct call_tree t = { 0 };

	cr_assert_eq(call_tree_count(&t, CALL_WHOLE, 5), 0);
	cr_assert_eq(slices_take(&s, &t), 0);
	t.node[CALL_WHOLE].count = 4;
	cr_assert_eq(slices_take(&s, &t), 0);
	cr_expect_eq(s.part.ntimes, 1);
	t.node[CALL_WHOLE].count = 6;
	cr_assert_eq(slices_take(&s, &t), 0);
	cr_expect_eq(s.part.time[1].count, 1);
	cr_assert_eq(call_tree_count(&p->calls, CALL_WHOLE, 3), 0);
	cr_assert_eq(slices_into(&s, &t, p), 0);
	expect_all(p);
	call_tree_fini(&t);
	slices_fini(&s);
	profile_free(p);
}

Test(ctl_slices, survive_symbols_and_folding)
{
	struct slices s = { .max = 8, .slice_ns = 1 };
	struct profile *p = recorded(&s, 20);
	const bool folds[] = { true };

	cr_assert_eq(symbolize(p, NULL), 0);
	cr_assert_eq(slices_of_functions(p), 0);
	expect_all(p);
	for (size_t f = 0; f < p->nfunctions; f++)
		cr_expect_eq(profile_slices(p, &p->functions[f], 0, p->nslices),
			     p->functions[f].samples);
	cr_assert_eq(call_tree_fold(&p->calls, folds), 0);
	expect_all(p);
	slices_fini(&s);
	profile_free(p);
}
