/* kernel_stacks.c - call graphs: stacks are complete, exact, and add up to the samples */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "tests/lib/stacks.h"

DAEMON_SUITE(kernel_stacks, "--rate", TICKS_RATE);

Test(kernel_stacks, follow_frame_pointers_through_a_recursion)
{
	stacks_expect_recursion(&d, 1, STACKS_ANY);
	stacks_expect_recursion(&d, 30, STACKS_ANY);
	stacks_expect_recursion(&d, 110, STACKS_ANY);
}

Test(kernel_stacks, marks_stacks_of_more_than_255_frames_as_deep)
{
	stacks_expect_deep(&d, STACKS_ANY);
}

Test(kernel_stacks, count_in_an_outer_frame_when_the_tree_is_full)
{
	struct stack_program program = { .run = run_two_recursions, .cpu_ns = STACKS_ANY.cpu_ns };
	struct profil_msg_observe ask = stacks_ask(PROFIL_SCOPE_PROCESSES);
	struct observer o;
	struct stacks s;

	ask.nodes = 1; /* rounded up to a page of 170: two recursions of 120 need more */
	program.depth = 3;
	stacks_observe(&o, &d, &ask, &program);
	observer_close(&o);
	program.depth = 120;
	stacks_observe(&o, &d, &ask, &program);
	s = stacks_read(&o, 120);
	cr_expect_gt(o.table->node_full, 0);
	cr_expect_eq(s.samples + o.table->stack_lost, observer_check(&o));
	observer_close(&o);
}

Test(kernel_stacks, of_the_whole_machine_include_every_process)
{
	stacks_expect_machine(&d, STACKS_ANY);
}

Test(kernel_stacks, have_kernel_frames_below_user_frames)
{
	stacks_expect_kernel_frames(&d, STACKS_ANY);
}

/* --- equal call paths ------------------------------------------------------------------------- */

/* Whether two nodes have the same frame below the same parent. */
static int same_frame(const void *a, const void *b)
{
	const struct profil_node *one = *(const struct profil_node *const *)a;
	const struct profil_node *two = *(const struct profil_node *const *)b;

	if (one->parent != two->parent)
		return one->parent < two->parent ? -1 : 1;
	return one->place < two->place ? -1 : one->place > two->place;
}

/* Expects each path to have one node, whichever process it comes from. Returns those in file @name.
 */
static unsigned int expect_merged_nodes(const struct observer *o, const char *name)
{
	uint32_t n = o->table->nodes, used = 0;
	__cleanup(freep) const struct profil_node **node = calloc(n, sizeof(*node));
	unsigned int found = 0;

	cr_assert_not_null(node);
	for (uint32_t i = 0; i < n; i++) {
		node[used] = observer_node(o, PROFIL_STACK_ROOTS + i);
		used += node[used]->place != 0;
	}
	qsort(node, used, sizeof(*node), same_frame);
	for (uint32_t i = 0; i < used; i++) {
		cr_expect(!i || same_frame(&node[i - 1], &node[i]), "two nodes of one path");
		found += stacks_in_file(o, node[i], name);
	}
	return found;
}

/* Expects @least nodes in file @name, or in any. */
static void expect_merged(const struct stack_program *program, const char *name, unsigned int least)
{
	struct profil_msg_observe ask = stacks_ask(PROFIL_SCOPE_PROCESSES);
	struct observer o;

	stacks_observe(&o, &d, &ask, program);
	cr_expect_geq(expect_merged_nodes(&o, name), least);
	cr_expect_eq(o.table->node_full, 0);
	observer_close(&o);
}

Test(kernel_stacks, of_children_are_the_nodes_of_their_parent)
{
	struct stack_program children = { .run = run_recursions_of_children,
					  .cpu_ns = STACKS_ANY.cpu_ns / 2,
					  .depth = 90,
					  .processes = 4 };

	expect_merged(&children, NULL, 90);
}

Test(kernel_stacks, of_a_program_are_the_same_nodes_at_any_address)
{
	expect_merged(&(struct stack_program){ .run = run_images, .processes = 4 }, "image", 1);
}
