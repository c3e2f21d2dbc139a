/* waits.c - where the notes of a wait are in the tree, with and without a stack */
#include <unistd.h>

#include "synthetic.h"
#include "tests/lib/observer.h"

SYNTHETIC_SUITE(synth_waits, true);

#define PERIOD_NS 10000000u
#define WAITS 5

static struct observer o;

static void observe(void)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, PERIOD_NS);

	ask.stack_mode = PROFIL_STACK_FP;
	cr_assert_eq(observer_open(&o, &d, &ask), 0);
	cr_assert_eq(observer_add(&o, getpid()), 0);
}

/* WAITS periods in which this process, having left @node, waited for a futex. */
static void wait_at(uint32_t node, enum profil_cpu_state state)
{
	uint64_t args[] = { profil_entry_target(synthetic_entry(&s, getpid())), node,
			    profil_place(PROFIL_NOTE_WAIT, 0, PROFIL_WAIT_FUTEX), state,
			    WAITS * PERIOD_NS };
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = args, .ctx_size_in = sizeof(args));

	cr_assert_eq(bpf_prog_test_run_opts(bpf_program__fd(s.object->progs.synth_waits), &run), 0);
}

/* The only node with samples, which are WAITS; NULL: none has any. */
static const struct profil_node *waited(void)
{
	const struct profil_node *found = NULL;

	for (uint32_t i = 0; i < o.table->nodes; i++) {
		const struct profil_node *node = observer_node(&o, PROFIL_STACK_ROOTS + i);

		if (!node->count)
			continue;
		cr_assert(!found, "two nodes have samples");
		cr_assert_eq(node->count, WAITS);
		found = node;
	}
	return found;
}

struct note {
	uint32_t kind;
	uint32_t value;
};

static const struct note notes[] = { { PROFIL_NOTE_WAKER, PROFIL_WAKER_INTERRUPT },
				     { PROFIL_NOTE_WAIT, PROFIL_WAIT_FUTEX },
				     { PROFIL_NOTE_STATE, PROFIL_STATE_ASLEEP } };

/* Expects the first @n of these, from @node outwards. Returns what is above them. */
static uint32_t above_notes(const struct profil_node *node, unsigned int n)
{
	uint32_t parent = 0;

	cr_assert(node, "no node has samples");
	for (unsigned int i = 0; i < n; i++) {
		cr_assert_eq(node->place, profil_place(notes[i].kind, 0, notes[i].value), "note %u",
			     i);
		parent = node->parent;
		if (i + 1 < n)
			node = observer_node(&o, parent);
	}
	return parent;
}

Test(synth_waits, one_whose_stack_was_not_read_is_lost_not_a_whole_stack_of_notes)
{
	observe();
	wait_at(0, 0);
	cr_expect_null(waited());
	cr_expect_eq(o.table->stack_lost, WAITS);
}

Test(synth_waits, one_below_the_root_that_says_how_its_walk_ended_has_its_notes)
{
	observe();
	wait_at(PROFIL_STACK_NO_TABLE, 0);
	cr_expect_eq(above_notes(waited(), 2), PROFIL_STACK_NO_TABLE);
	cr_expect_eq(o.table->stack_lost, 0);
}

Test(synth_waits, one_whose_state_is_asked_for_keeps_it_without_a_stack)
{
	observe();
	wait_at(0, PROFIL_STATE_ASLEEP);
	cr_expect_eq(above_notes(waited(), 3), PROFIL_STACK_UNREADABLE);
	cr_expect_eq(o.table->stack_lost, 0);
}
