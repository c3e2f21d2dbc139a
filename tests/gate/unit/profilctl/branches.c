/* branches.c - records of branches are read back from the stacks that hold them */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/observe_maps.h"
#include "formats/branches.h"

/* Adds @b, and @inlines functions inlined at each of its frames, as symbolize() does. */
static void add(struct call_tree *t, const struct branch *b, int inlines)
{
	const __u64 offset[] = { b->from + 1, b->to + b->runs, b->end };
	__u32 at = CALL_WHOLE;

	for (int i = 0; i < 2 + b->runs; i++) {
		__u32 object = i ? b->object : b->from_object;

		cr_assert_eq(call_tree_add(t, at, object, offset[i], &at), 0);
		t->node[at].frame = 0;
		for (int k = 0; k < inlines; k++) {
			cr_assert_eq(call_tree_add(t, at, object, offset[i], &at), 0);
			t->node[at].frame = 1;
		}
	}
	cr_assert_eq(call_tree_count(t, at, b->count), 0);
}

static void add_frames(struct call_tree *t)
{
	struct call_frame outer = { .name = strdup("outer"), .offset = 64 };
	struct call_frame inlined = { .name = strdup("inlined") };
	__u32 index;

	cr_assert_eq(call_tree_add_frame(t, &outer, &index), 0);
	cr_assert_eq(call_tree_add_frame(t, &inlined, &index), 0);
}

static bool is_same(const struct branch *x, const struct branch *y)
{
	return x->from == y->from && x->to == y->to && x->end == y->end && x->count == y->count &&
	       x->from_object == y->from_object && x->object == y->object && x->runs == y->runs;
}

static void expect_same(const struct call_tree *t, const struct branch *want, size_t nwant)
{
	struct profile p = { .calls = *t };
	struct branch *got;
	size_t n;

	cr_assert_eq(branches_read(&got, &n, &p), 0);
	cr_assert_eq(n, nwant);
	for (size_t i = 0; i < n; i++)
		cr_expect(is_same(&got[i], &want[i]), "branch %zu", i);
	free(got);
}

static const struct branch some[] = {
	{ .from = 100, .to = 200, .end = 200, .count = 3, .object = 1 },
	{ .from = 100, .to = 200, .end = 240, .count = 5, .object = 1, .runs = true },
	{ .from = 100, .to = 200, .end = 200, .count = 7, .object = 1, .runs = true },
	{ .from = 300, .to = 100, .end = 120, .count = 1, .from_object = 2, .runs = true },
};
#define SOME (sizeof(some) / sizeof(*some))

Test(branches, are_those_that_were_added)
{
	struct call_tree t = { 0 };

	for (size_t i = 0; i < SOME; i++)
		cr_assert_eq(branches_add(&t, &some[i]), 0);
	expect_same(&t, some, SOME);
	call_tree_fini(&t);
}

Test(branches, do_not_depend_on_inlined_functions)
{
	for (int inlines = 0; inlines < 3; inlines++) {
		struct call_tree t = { 0 };

		add_frames(&t);
		for (size_t i = 0; i < SOME; i++)
			add(&t, &some[i], inlines);
		expect_same(&t, some, SOME);
		call_tree_fini(&t);
	}
}

Test(branches, without_all_frames_are_none)
{
	const __u64 deep[] = { 1, 2, 3, 4 }, back[] = { 1, 9, 3 };
	struct call_tree t = { 0 };
	__u32 at = CALL_WHOLE;

	cr_assert_eq(call_tree_count(&t, CALL_WHOLE, 1), 0);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(call_tree_add(&t, at, 0, deep[i], &at), 0);
	cr_assert_eq(call_tree_count(&t, at, 1), 0);
	at = CALL_WHOLE;
	for (int i = 0; i < 3; i++)
		cr_assert_eq(call_tree_add(&t, at, 0, back[i], &at), 0);
	cr_assert_eq(call_tree_count(&t, at, 1), 0);
	cr_assert_eq(call_tree_add(&t, CALL_WHOLE, 0, 50, &at), 0);
	cr_assert_eq(call_tree_count(&t, at, 1), 0);
	expect_same(&t, NULL, 0);
	call_tree_fini(&t);
}

/* A file can say more than the kernel counts; what reads it follows the code byte by byte. */
Test(branches, with_longer_runs_than_the_kernel_counts_are_none)
{
	const struct branch longest = { .to = 8,
					.end = 8 + PROFIL_BRANCH_RUN_MAX - 1,
					.runs = true };

	for (int more = 0; more < 2; more++) {
		struct branch b = longest;
		struct call_tree t = { 0 };

		b.count = 1;
		b.end += more ? 1 : 0;
		cr_assert_eq(branches_add(&t, &b), 0);
		expect_same(&t, &b, !more);
		call_tree_fini(&t);
	}
}
