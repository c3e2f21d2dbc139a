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

Test(call_tree, subtracts_an_earlier_tree)
{
	const __u64 one[] = { 1, 3 }, other[] = { 1, 4 };
	struct call_tree t = { 0 }, last = { 0 }, now = { 0 }, nothing = { 0 };

	count(&last, CALL_WHOLE, one, 2);
	count(&now, CALL_WHOLE, other, 2); /* in another order */
	count(&now, CALL_WHOLE, one, 2);
	count(&now, CALL_WHOLE, one, 2);
	cr_assert_eq(call_tree_difference(&t, &last, &now), 0);
	cr_expect_eq(call_tree_sum(&t), 2);
	cr_expect_eq(t.n, CALL_ROOTS + 3);
	call_tree_fini(&t);
	cr_assert_eq(call_tree_difference(&t, &nothing, &now), 0);
	cr_expect_eq(call_tree_sum(&t), 3);
	call_tree_fini(&t);
	cr_assert_eq(call_tree_difference(&t, &now, &now), 0);
	cr_expect_eq(call_tree_sum(&t), 0);
	call_tree_fini(&t);
	call_tree_fini(&last);
	call_tree_fini(&now);
}
