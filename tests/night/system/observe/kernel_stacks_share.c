/* kernel_stacks_share.c - nearly all stacks are complete, exact, and merged with those of other
 * processes */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "tests/lib/stacks.h"

DAEMON_SUITE(kernel_stacks_share, "--rate", TICKS_RATE);

Test(kernel_stacks_share, follow_frame_pointers_through_a_recursion)
{
	stacks_expect_recursion(&d, 1, STACKS_SHARE(97));
	stacks_expect_recursion(&d, 30, STACKS_SHARE(97));
	stacks_expect_recursion(&d, 110, STACKS_SHARE(97));
}

Test(kernel_stacks_share, marks_stacks_of_more_than_255_frames_as_deep)
{
	stacks_expect_deep(&d, STACKS_SHARE(97));
}

Test(kernel_stacks_share, of_the_whole_machine_include_every_process)
{
	stacks_expect_machine(&d, STACKS_SHARE(90));
}

Test(kernel_stacks_share, have_kernel_frames_below_user_frames)
{
	stacks_expect_kernel_frames(&d, STACKS_SHARE(90));
}

/* --- equal call paths ------------------------------------------------------------------------- */

/* The frames in file @name through which at least 1 % of the samples go. */
static unsigned int hot_nodes(const struct observer *o, const char *name)
{
	__cleanup(freep) uint64_t *through = calloc(o->table->nodes, sizeof(*through));
	unsigned int hot = 0;
	uint64_t all = 0;

	cr_assert_not_null(through);
	for (uint32_t i = 0; i < o->table->nodes; i++) {
		uint32_t count = observer_node(o, PROFIL_STACK_ROOTS + i)->count;

		all += count;
		for (uint32_t at = PROFIL_STACK_ROOTS + i; count && at >= PROFIL_STACK_ROOTS;
		     at = observer_node(o, at)->parent)
			through[at - PROFIL_STACK_ROOTS] += count;
	}
	cr_expect_gt(all, 50);
	for (uint32_t i = 0; i < o->table->nodes; i++) {
		const struct profil_node *node = observer_node(o, PROFIL_STACK_ROOTS + i);

		hot += through[i] && through[i] * 100 >= all && stacks_in_file(o, node, name);
	}
	return hot;
}

static unsigned int hot_nodes_of(struct stack_program program, unsigned int processes,
				 const char *name)
{
	struct profil_msg_observe ask = stacks_ask(PROFIL_SCOPE_PROCESSES);
	struct observer o;
	unsigned int hot;

	program.processes = processes;
	stacks_observe(&o, &d, &ask, &program);
	hot = hot_nodes(&o, name);
	cr_expect_eq(o.table->node_full, 0);
	observer_close(&o);
	return hot;
}

/* If each process had nodes of its own, 20 would have ten times as many, of 5 % each. */
static void expect_merged(struct stack_program program, const char *name, unsigned int least)
{
	unsigned int few = hot_nodes_of(program, 2, name), many = hot_nodes_of(program, 20, name);

	cr_expect_geq(few, least);
	cr_expect_leq(many * 10, few * 12 + 10, "%u nodes of 2 processes, %u of 20", few, many);
}

Test(kernel_stacks_share, of_children_are_the_nodes_of_their_parent)
{
	struct stack_program children = { .run = run_recursions_of_children,
					  .cpu_ns = TICKS_SPELL_NS / 5,
					  .depth = 90 };

	expect_merged(children, NULL, 90);
}

Test(kernel_stacks_share, of_a_program_are_the_same_nodes_at_any_address)
{
	expect_merged((struct stack_program){ .run = run_images }, "image", 1);
}
