/* call_tree.c - stacks merge into one tree of calling contexts */
#include <criterion/criterion.h>

#include "profile/call_tree.h"

/* Counts a stack of @n offsets, outermost first, below @root. */
static void count(struct call_tree *t, enum call_root root, const __u64 *offset, size_t n)
{
	__u32 at = root;

	for (size_t i = 0; i < n; i++)
		cr_assert_eq(call_tree_add(t, at, 1, offset[i], &at), 0);
	t->node[at].count++;
}

Test(call_tree, merges_equal_stacks)
{
	const __u64 stack[] = { 1, 2, 3 };
	struct call_tree t = { 0 };

	for (int i = 0; i < 5; i++)
		count(&t, CALL_WHOLE, stack, 3);
	cr_assert_eq(t.n, CALL_ROOTS + 3);
	cr_assert_eq(t.node[CALL_ROOTS + 2].count, 5);
	call_tree_fini(&t);
}

Test(call_tree, distinguishes_callers_and_roots)
{
	const __u64 one[] = { 1, 3 }, other[] = { 2, 3 };
	struct call_tree t = { 0 };

	count(&t, CALL_WHOLE, one, 2);
	count(&t, CALL_WHOLE, other, 2);
	count(&t, CALL_DEEP, one, 2);
	cr_assert_eq(t.n, CALL_ROOTS + 6);
	cr_assert_eq(call_tree_samples(&t, CALL_WHOLE), 2);
	cr_assert_eq(call_tree_samples(&t, CALL_DEEP), 1);
	cr_assert_eq(call_tree_samples(&t, CALL_BEYOND), 0);
	cr_assert_eq(call_tree_sum(&t), 3);
	call_tree_fini(&t);
}

Test(call_tree, adds_another_tree)
{
	struct call_tree t = { 0 }, u = { 0 };
	const __u64 one[] = { 1, 3 }, other[] = { 1, 4, 5 };

	count(&t, CALL_WHOLE, one, 2);
	count(&u, CALL_WHOLE, one, 2);
	count(&u, CALL_WHOLE, other, 3);
	cr_assert_eq(call_tree_add_all(&t, &u), 0);
	cr_assert_eq(t.n, CALL_ROOTS + 4);
	cr_assert_eq(call_tree_sum(&t), 3);
	call_tree_fini(&t);
	call_tree_fini(&u);
}

Test(call_tree, keeps_a_hundred_thousand_contexts)
{
	struct call_tree t = { 0 };

	for (__u64 i = 0; i < 100000; i++) {
		const __u64 stack[] = { i % 100, i };

		count(&t, CALL_WHOLE, stack, 2);
	}
	cr_assert_eq(t.n, CALL_ROOTS + 100 + 100000);
	cr_assert_eq(call_tree_sum(&t), 100000);
	call_tree_fini(&t);
}

/* Of equal siblings all fold, and then their caller if it is light still. */
Test(call_tree, folds_light_leaves_into_their_callers)
{
	const __u64 light[] = { 1, 2, 3 }, other[] = { 1, 2, 4 }, heavy[] = { 1, 5, 6 },
		    alone[] = { 7 };
	struct call_tree t = { 0 };

	count(&t, CALL_WHOLE, light, 3);
	count(&t, CALL_WHOLE, other, 3);
	for (int i = 0; i < 3; i++)
		count(&t, CALL_WHOLE, heavy, 3);
	count(&t, CALL_WHOLE, heavy, 2); /* light, but others are below it */
	count(&t, CALL_WHOLE, alone, 1);
	cr_assert_eq(call_tree_fold_light(&t, 2), 0);
	cr_assert_eq(t.n, CALL_ROOTS + 5);
	cr_expect_eq(t.node[CALL_ROOTS + 1].offset, 2);
	cr_expect_eq(t.node[CALL_ROOTS + 1].count, 2);
	cr_expect_eq(t.node[CALL_ROOTS + 2].count, 1);
	cr_expect_eq(t.node[CALL_ROOTS + 3].count, 3);
	cr_expect_eq(t.node[CALL_ROOTS + 4].count, 1);
	cr_assert_eq(call_tree_fold_light(&t, 100), 0);
	cr_assert_eq(t.n, CALL_ROOTS + 2);
	cr_expect_eq(t.node[CALL_ROOTS].count, 6);
	cr_expect_eq(call_tree_sum(&t), 7);
	call_tree_fini(&t);
}

Test(call_tree, folds_into_callers)
{
	const __u64 user[] = { 1 }, kernel[] = { 1, 2, 3 };
	const bool folds[] = { false, false, true };
	struct call_tree t = { 0 };
	__u32 at = CALL_WHOLE;

	count(&t, CALL_WHOLE, user, 1);
	count(&t, CALL_WHOLE, kernel, 3);
	for (__u64 i = 2; i < 4; i++)
		t.node[CALL_ROOTS + i - 1].object = 2;
	cr_assert_eq(call_tree_add(&t, at, 2, 9, &at), 0);
	t.node[at].count = 4; /* of a kernel thread */
	cr_assert_eq(call_tree_fold(&t, folds), 0);
	cr_assert_eq(t.n, CALL_ROOTS + 1);
	cr_expect_eq(t.node[CALL_ROOTS].count, 2);
	cr_expect_eq(t.node[CALL_NOWHERE].count, 4);
	cr_expect_eq(call_tree_sum(&t), 6);
	call_tree_fini(&t);
}

Test(call_tree, drops_nodes_without_samples)
{
	const __u64 one[] = { 1, 3 }, other[] = { 1, 4, 5 };
	struct call_tree t = { 0 };

	count(&t, CALL_WHOLE, one, 2);
	count(&t, CALL_DEEP, other, 3);
	t.node[CALL_ROOTS + 1].count = 0;
	cr_assert_eq(call_tree_prune(&t), 0);
	cr_assert_eq(t.n, CALL_ROOTS + 3);
	cr_expect_eq(t.node[CALL_ROOTS].parent, CALL_DEEP);
	cr_expect_eq(t.node[CALL_ROOTS + 2].count, 1);
	count(&t, CALL_DEEP, other, 3);
	cr_expect_eq(t.node[CALL_ROOTS + 2].count, 2, "it can be found as before");
	call_tree_fini(&t);
}

Test(call_tree, finds_new_samples_of_nodes_that_were_folded_since)
{
	const __u64 outer[] = { 1 }, middle[] = { 1, 3 }, inner[] = { 1, 3, 4 }, other[] = { 2, 5 };
	struct call_tree t = { 0 }, last = { 0 }, now = { 0 };

	count(&last, CALL_WHOLE, outer, 1);
	for (int i = 0; i < 5; i++)
		count(&last, CALL_WHOLE, inner, 3);
	for (int i = 0; i < 7; i++)
		count(&last, CALL_WHOLE, middle, 2);
	count(&last, CALL_DEEP, other, 2);
	/* 5 of inner and 7 of middle are now of outer, and other is in no node. */
	for (int i = 0; i < 1 + 5 + 7 + 2; i++)
		count(&now, CALL_WHOLE, outer, 1); /* 2 new ones */
	for (int i = 0; i < 3; i++)
		count(&now, CALL_WHOLE, middle, 2); /* again, with 3 new ones */
	cr_assert_eq(call_tree_difference(&t, &last, &now, ~0ull), 0);
	cr_expect_eq(call_tree_sum(&t), 2 + 3);
	cr_assert_eq(t.n, CALL_ROOTS + 1);
	cr_expect_eq(t.node[CALL_ROOTS].offset, 1, "they make up for former ones of middle");
	call_tree_fini(&t);
	call_tree_fini(&last);
	call_tree_fini(&now);
}

Test(call_tree, leaves_to_the_next_difference_what_is_too_much_for_one)
{
	const __u64 one[] = { 1, 3 }, other[] = { 1, 4 };
	struct call_tree t = { 0 }, none = { 0 }, now = { 0 }, later = { 0 };

	for (int i = 0; i < 4; i++)
		count(&now, CALL_WHOLE, one, 2);
	for (int i = 0; i < 4; i++)
		count(&now, CALL_WHOLE, other, 2);
	cr_assert_eq(call_tree_add_all(&later, &now), 0);
	count(&later, CALL_WHOLE, other, 2);
	cr_assert_eq(call_tree_difference(&t, &none, &now, 5), 0);
	cr_expect_eq(call_tree_sum(&t), 5);
	call_tree_fini(&t);
	cr_assert_eq(call_tree_difference(&t, &now, &later, 100), 0);
	cr_expect_eq(call_tree_sum(&t), 4);
	call_tree_fini(&t);
	call_tree_fini(&now);
	call_tree_fini(&later);
}

Test(call_tree, subtracts_an_earlier_tree)
{
	const __u64 one[] = { 1, 3 }, other[] = { 1, 4 };
	struct call_tree t = { 0 }, last = { 0 }, now = { 0 }, nothing = { 0 };

	count(&last, CALL_WHOLE, one, 2);
	count(&now, CALL_WHOLE, other, 2); /* in another order */
	count(&now, CALL_WHOLE, one, 2);
	count(&now, CALL_WHOLE, one, 2);
	cr_assert_eq(call_tree_difference(&t, &last, &now, ~0ull), 0);
	cr_expect_eq(call_tree_sum(&t), 2);
	cr_expect_eq(t.n, CALL_ROOTS + 3);
	call_tree_fini(&t);
	cr_assert_eq(call_tree_difference(&t, &nothing, &now, ~0ull), 0);
	cr_expect_eq(call_tree_sum(&t), 3);
	call_tree_fini(&t);
	cr_assert_eq(call_tree_difference(&t, &now, &now, ~0ull), 0);
	cr_expect_eq(call_tree_sum(&t), 0);
	call_tree_fini(&t);
	call_tree_fini(&last);
	call_tree_fini(&now);
}
