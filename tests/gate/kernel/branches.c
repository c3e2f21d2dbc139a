/* branches.c - records of taken branches: each in one node and place, or in one visible counter */
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "synthetic.h"
#include "tests/programs/loops.h"
#include "tests/lib/observed.h"
#include "tests/lib/observer.h"

SYNTHETIC_SUITE(synth_branches, true);

#define PERIOD_NS 10000000u
#define RECORDS 64 /* of one sample at most */
#define NOWHERE 8
#define KERNEL 0xffffffff81000000ull

static bool interrupts; /* samples come while the CPU walks a stack */

/* A sample with @n records, the newest first, as the CPU that counts it finds them. */
static void give(const struct perf_branch_entry *record, uint32_t n)
{
	const struct bpf_map *map = s.object->maps.branches;
	struct synth_branches a = { .flags = PROFIL_TARGET_TICK, .n = n, .busy = interrupts };
	size_t bytes = bpf_map__value_size(map), cpus = (size_t)libbpf_num_possible_cpus();
	__cleanup(freep) char *values = calloc(cpus, bytes);
	uint32_t zero = 0;

	for (size_t i = 0; i < cpus; i++)
		memcpy(values + i * bytes, n ? record : (void *)&zero, n * sizeof(*record));
	cr_assert_eq(bpf_map_update_elem(bpf_map__fd(map), &zero, values, BPF_ANY), 0);
	SYNTHETIC_RUN(&s, branches, &a);
}

static struct profil_msg_observe ask_stacks(enum profil_scope scope)
{
	struct profil_msg_observe ask = observer_ask(scope, PERIOD_NS);

	ask.stack_mode = PROFIL_STACK_FP;
	return ask;
}

static void observe(struct observer *o, const struct profil_msg_observe *ask)
{
	observer_must_open(o, &d, ask);
	if (ask->scope == PROFIL_SCOPE_PROCESSES)
		cr_assert_eq(observer_add(o, getpid()), 0);
}

/* The samples in nodes, and those that are in none. */
static uint64_t in_nodes(const struct observer *o)
{
	uint64_t sum = o->table->stack_lost;

	for (uint32_t i = 0; i < o->table->nodes; i++)
		sum += observer_node(o, PROFIL_STACK_ROOTS + i)->count;
	return sum;
}

/* The samples at these frames, innermost first, of which only the first is no return address. */
static uint64_t at(const struct observer *o, const uintptr_t *pc, unsigned int n)
{
	uint32_t image = observer_find(o, PROFIL_IMAGE_FILE, "kernel-tests");
	uint64_t sum = 0;

	for (uint32_t i = 0; i < o->table->nodes; i++) {
		const struct profil_node *leaf = observer_node(o, PROFIL_STACK_ROOTS + i);
		const struct profil_node *node = leaf;
		unsigned int k = 0;

		while (node && k < n &&
		       node->place ==
			       profil_place(0, image, (uint32_t)observed_offset(pc[k]) + (k > 0))) {
			k++;
			node = node->parent < PROFIL_STACK_ROOTS ? NULL
								 : observer_node(o, node->parent);
		}
		sum += k == n && !node ? leaf->count : 0;
	}
	return sum;
}

#define AT(o, ...)                          \
	at(o, (uintptr_t[]){ __VA_ARGS__ }, \
	   sizeof((uintptr_t[]){ __VA_ARGS__ }) / sizeof(uintptr_t))

/* --- records ---------------------------------------------------------------------------------- */

Test(synth_branches, have_the_branch_its_target_and_the_branch_behind_that)
{
	uintptr_t a = loop_at(1), b = loop_at(2), c = loop_at(3);
	const struct perf_branch_entry record[] = {
		{ .from = a + 8, .to = b },	     /* the newest: its code still runs */
		{ .from = c + 4, .to = a },	     /* ran to a + 8 */
		{ .from = KERNEL, .to = c },	     /* is left out */
		{ .from = b + 4, .to = b },	     /* what ran then is not known */
		{ .from = b + 6, .to = KERNEL + 4 }, /* is left out */
		{ .from = a + 4, .to = b },	     /* likewise */
		{ .from = a + 6, .to = NOWHERE },    /* unmatched */
		{ .from = c + 6, .to = a },	     /* ran to a + 6, which is known */
		{ .from = c + 6, .to = b },	     /* c + 6 is behind b, as far as that goes */
		{ .from = NOWHERE, .to = c + 2 },    /* unmatched */
		{ .from = b + 6, .to = c + 8 },	     /* nothing ran backwards to NOWHERE */
		{ .from = c + 4, .to = b + 8 },	     /* nor to b + 6 */
	};
	struct profil_msg_observe ask = ask_stacks(PROFIL_SCOPE_PROCESSES);
	struct observer o;

	observe(&o, &ask);
	give(record, sizeof(record) / sizeof(*record));
	cr_expect_eq(AT(&o, b, a + 8), 1);
	cr_expect_eq(AT(&o, a + 8, a, c + 4), 1);
	cr_expect_eq(AT(&o, b, b + 4), 1);
	cr_expect_eq(AT(&o, b, a + 4), 1);
	cr_expect_eq(AT(&o, a + 6, a, c + 6), 1);
	cr_expect_eq(AT(&o, c + 6, b, c + 6), 1);
	cr_expect_eq(AT(&o, c + 8, b + 6), 1);
	cr_expect_eq(AT(&o, b + 8, c + 4), 1);
	cr_expect_eq(o.table->unmatched, 2);
	cr_expect_eq(o.table->stack_lost, 2);
	cr_expect_eq(observer_find(&o, PROFIL_IMAGE_KERNEL, NULL), 0, "the kernel's are shown");
	cr_expect_eq(observer_check(&o), 10);
	cr_expect_eq(in_nodes(&o), 10);
	observer_close(&o);
}

/* Gives samples of records between the loops; returns the number of those that count. */
static uint64_t give_many(unsigned int samples)
{
	struct perf_branch_entry record[RECORDS];
	uint64_t given = 0;

	for (unsigned int i = 0; i < samples; i++) {
		uint32_t n = 1 + (uint32_t)rand() % RECORDS;

		memset(record, 0, sizeof(record));
		for (uint32_t k = 0; k < n; k++) {
			record[k].from = loop_at((unsigned int)rand() % LOOPS) +
					 (unsigned int)rand() % LOOP_BYTES;
			record[k].to = loop_at((unsigned int)rand() % LOOPS);
			if (rand() % 16 == 0)
				record[k].from = KERNEL + (unsigned int)rand() % (1 << 20);
			else
				given++;
		}
		give(record, n);
	}
	return given;
}

Test(synth_branches, of_all_attachments_have_all_records_each)
{
	struct profil_msg_observe ask = ask_stacks(PROFIL_SCOPE_PROCESSES);
	struct profil_msg_observe wide = ask_stacks(PROFIL_SCOPE_COMMAND);
	struct observer o[3];
	uint64_t given;

	prctl(PR_GET_NAME, wide.command);
	observe(&o[0], &ask);
	observe(&o[1], &ask);
	observe(&o[2], &wide);
	given = give_many(200);
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(observer_check(&o[i]), given, "attachment %d", i);
		cr_expect_eq(in_nodes(&o[i]), given, "attachment %d", i);
		cr_expect_eq(o[i].table->node_full, 0);
		observer_close(&o[i]);
	}
}

Test(synth_branches, without_room_for_a_node_are_counted_and_told)
{
	struct profil_msg_observe ask = ask_stacks(PROFIL_SCOPE_PROCESSES);
	struct observer o;
	uint64_t given;

	ask.nodes = 1; /* a page */
	observe(&o, &ask);
	given = give_many(200);
	cr_expect_gt(o.table->node_full, 0);
	cr_expect_eq(observer_check(&o), given);
	cr_expect_eq(in_nodes(&o), given);
	observer_close(&o);
}

Test(synth_branches, that_interrupt_a_walk_are_lost_and_told)
{
	struct profil_msg_observe ask = ask_stacks(PROFIL_SCOPE_PROCESSES);
	struct observer o;
	uint64_t lost, given;

	observe(&o, &ask);
	interrupts = true;
	lost = give_many(20);
	interrupts = false;
	given = lost + give_many(20);
	cr_expect_eq(o.table->lost, lost);
	cr_expect_eq(o.table->stack_lost, lost);
	cr_expect_eq(observer_check(&o), given);
	cr_expect_eq(in_nodes(&o), given);
	observer_close(&o);
}

/* Makes the only attachment one of an owner that may not observe others. */
static void narrow(void)
{
	int observers = bpf_map__fd(s.object->maps.observers);
	struct profil_observer o;
	uint32_t i = 0;

	while (i < PROFIL_MAX_TARGETS && !(s.tables->target[i].flags & PROFIL_TARGET_OBSERVE))
		i++;
	cr_assert_lt(i, PROFIL_MAX_TARGETS);
	cr_assert_eq(bpf_map_lookup_elem(observers, &s.tables->target[i].slot, &o), 0);
	o.flags |= PROFIL_OBSERVER_NARROW;
	cr_assert_eq(bpf_map_update_elem(observers, &s.tables->target[i].slot, &o, BPF_ANY), 0);
}

/* One sample after the other takes more than the part of the time that such an owner has. */
Test(synth_branches, beyond_the_time_of_their_owner_are_lost_and_told)
{
	struct profil_msg_observe ask = ask_stacks(PROFIL_SCOPE_PROCESSES);
	struct observer o;
	uint64_t given = 0;

	observe(&o, &ask);
	narrow();
	while (!o.table->lost)
		given += give_many(10);
	cr_expect_eq(o.table->stack_lost, o.table->lost);
	cr_expect_eq(observer_check(&o), given);
	cr_expect_eq(in_nodes(&o), given);
	observer_close(&o);
}

Test(synth_branches, of_another_clock_are_not_counted)
{
	struct profil_msg_observe ask = ask_stacks(PROFIL_SCOPE_PROCESSES);
	struct synth_branches a = { .flags = PROFIL_TARGET_EVENT, .n = RECORDS };
	struct observer o;

	observe(&o, &ask);
	SYNTHETIC_RUN(&s, branches, &a);
	cr_expect_eq(observer_check(&o), 0);
	observer_close(&o);
}

Test(synth_branches, that_do_not_exist_are_none)
{
	struct profil_msg_observe ask = ask_stacks(PROFIL_SCOPE_PROCESSES);
	struct observer o;

	observe(&o, &ask);
	give(NULL, 0);
	cr_expect_eq(observer_check(&o), 0);
	observer_close(&o);
}
