/* call_graph.c - trees of callees and callers, and sums that count a sample once */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "profile/call_graph.h"

#define FRAMES 8

/* Functions are named by letters: a stack is a string, the outermost function first. */
static void count(struct call_tree *t, const char *stack, __u64 n)
{
	__u32 at = CALL_WHOLE;

	for (; *stack; stack++) {
		cr_assert_eq(call_tree_add(t, at, 0, (__u64)*stack, &at), 0);
		t->node[at].frame = (__u32)(*stack - 'a');
	}
	t->node[at].count += n;
	t->nframes = FRAMES;
}

/* The node that @path leads to, from the root on. */
static const struct call_graph_node *follow(const struct call_graph *g, const char *path)
{
	const struct call_graph_node *at = &g->node[0];

	for (; *path; path++) {
		__u32 i = at->child;

		while (i != CALL_GRAPH_NONE && g->node[i].frame != (__u32)(*path - 'a'))
			i = g->node[i].next;
		cr_assert_neq(i, CALL_GRAPH_NONE, "no %s", path);
		at = &g->node[i];
	}
	return at;
}

/* The tree has no frames of its own to free. */
static void done(struct call_tree *t, struct call_graph *g)
{
	t->nframes = 0;
	call_tree_fini(t);
	call_graph_fini(g);
}

Test(call_graph, adds_up_from_the_leaves)
{
	struct call_tree t = { 0 };
	struct call_graph g;

	count(&t, "abc", 3);
	count(&t, "abd", 5);
	count(&t, "a", 1);
	cr_assert_eq(call_graph_init(&g, &t), 0);
	cr_assert_eq(g.node[0].total, 9);
	cr_assert_eq(follow(&g, "a")->total, 9);
	cr_assert_eq(follow(&g, "a")->self, 1);
	cr_assert_eq(follow(&g, "ab")->total, 8);
	cr_assert_eq(follow(&g, "ab")->self, 0);
	cr_assert_eq(g.node[follow(&g, "ab")->child].frame, 'd' - 'a', "the largest comes first");
	done(&t, &g);
}

Test(call_graph, folds_a_function_that_calls_itself)
{
	struct call_tree t = { 0 };
	struct call_graph g;
	bool wanted[FRAMES] = { 0 };

	wanted['b' - 'a'] = true;
	count(&t, "abbb", 4);
	count(&t, "abbc", 2);
	count(&t, "abc", 3);
	count(&t, "abab", 5); /* not itself */
	cr_assert_eq(call_graph_init(&g, &t), 0);
	cr_expect_eq(g.node[0].total, 14);
	cr_expect_eq(follow(&g, "ab")->self, 4);
	cr_expect_eq(follow(&g, "ab")->total, 14);
	cr_expect_eq(follow(&g, "abc")->self, 5);
	cr_expect_eq(follow(&g, "abab")->self, 5);
	cr_expect_eq(g.n, 6, "the root, a, b, c, a, b");
	call_graph_fini(&g);
	cr_assert_eq(call_graph_callees(&g, &t, wanted), 0);
	cr_expect_eq(follow(&g, "b")->self, 4);
	cr_expect_eq(follow(&g, "bc")->self, 5);
	done(&t, &g);
}

Test(call_graph, shows_callees_from_the_outermost_call)
{
	struct call_tree t = { 0 };
	struct call_graph g;
	bool wanted[FRAMES] = { 0 };

	wanted['b' - 'a'] = true;
	count(&t, "abcb", 2);
	count(&t, "dbc", 3);
	count(&t, "ad", 7);
	cr_assert_eq(call_graph_callees(&g, &t, wanted), 0);
	cr_assert_eq(g.node[0].total, 5);
	cr_assert_eq(follow(&g, "bc")->total, 5);
	cr_assert_eq(follow(&g, "bcb")->self, 2);
	done(&t, &g);
}

Test(call_graph, shows_callers_of_a_function)
{
	struct call_tree t = { 0 };
	struct call_graph g;
	bool wanted[FRAMES] = { 0 };

	wanted['c' - 'a'] = true;
	count(&t, "abc", 2);
	count(&t, "abcd", 3);
	count(&t, "aec", 4);
	count(&t, "ab", 9);
	cr_assert_eq(call_graph_callers(&g, &t, wanted), 0);
	cr_assert_eq(g.node[0].total, 9);
	cr_assert_eq(follow(&g, "cb")->total, 5);
	cr_assert_eq(follow(&g, "ce")->total, 4);
	cr_assert_eq(follow(&g, "cba")->self, 5);
	done(&t, &g);
}

/* The outermost frame of a cut stack is not the start of a thread. */
Test(call_graph, marks_cut_stacks)
{
	struct call_tree t = { 0 };
	struct call_graph g;
	bool wanted[FRAMES] = { false, true };
	__u32 at;

	count(&t, "ab", 2);
	cr_assert_eq(call_tree_add(&t, CALL_DEEP, 0, 'b', &at), 0);
	t.node[at].frame = 1;
	t.node[at].count = 3;
	cr_assert_eq(call_graph_init(&g, &t), 0);
	cr_expect_eq(g.node[0].total, 5);
	cr_assert_eq(g.node[g.node[0].child].frame, FRAMES + CALL_DEEP);
	cr_expect_eq(g.node[g.node[0].child].total, 3);
	cr_expect_eq(g.node[g.node[0].child].self, 0);
	call_graph_fini(&g);
	cr_assert_eq(call_graph_callers(&g, &t, wanted), 0);
	at = follow(&g, "b")->child;
	cr_expect_eq(g.node[at].frame, FRAMES + CALL_DEEP);
	cr_expect_eq(g.node[at].self, 3);
	cr_expect_eq(follow(&g, "b")->self, 0);
	done(&t, &g);
}

Test(call_graph, counts_a_sample_of_a_recursion_once)
{
	struct call_tree t = { 0 };
	struct call_graph none = { 0 };
	struct call_graph_sum *sum;

	count(&t, "abbb", 4);
	count(&t, "ab", 1);
	sum = call_graph_sums(&t);
	cr_assert_eq(sum[0].total, 5);
	cr_assert_eq(sum[1].total, 5);
	cr_assert_eq(sum[1].self, 5);
	free(sum);
	done(&t, &none);
}
