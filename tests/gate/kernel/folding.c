/* folding.c - the machine's tree of calls when it fills up: its coldest nodes are folded */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/wire.h"
#include "synthetic.h"
#include "tests/lib/observer.h"

SYNTHETIC_SUITE(synth_folding, true);

#define SLOT 0 /* the machine's first profile */
#define HOT 500
#define BATCH 5000

static struct observer o;
static uint32_t top = PROFIL_STACK_WHOLE; /* above the stacks */

/* Counts @each samples at each of @n stacks. Returns how many stacks have found a node. */
static uint32_t count_stacks(uint32_t from, uint32_t n, uint32_t each)
{
	uint64_t args[] = { SLOT, from, n, each, top };
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = args, .ctx_size_in = sizeof(args));

	cr_assert_eq(bpf_prog_test_run_opts(bpf_program__fd(s.object->progs.synth_stacks), &run),
		     0);
	return run.retval;
}

/* Returns the samples that have found a node. */
static uint64_t give(uint32_t from, uint32_t n, uint32_t each)
{
	return (uint64_t)count_stacks(from, n, each) * each;
}

/* The reply comes before the table is in its slot, where stacks find their nodes. */
static void open_machine(void)
{
	struct profil_msg_machine m = { .ask = PROFIL_MACHINE_ON, .stack_mode = PROFIL_STACK_FP };

	memset(&o, 0, sizeof(o));
	o.sock = client_open(&d, NULL);
	wire_header(&m.h, PROFIL_MSG_MACHINE, sizeof(m), 0, 0);
	cr_assert_eq(observer_take(&o, &m.h), 0);
	cr_assert(o.table->stack_mode);
	SYNTHETIC_AWAIT(count_stacks(0, 1, 0));
}

static uint32_t folds(void)
{
	return __atomic_load_n(&o.table->folds, __ATOMIC_ACQUIRE);
}

/* Stacks that each are counted once, until nodes have been freed. Returns the samples. */
static uint64_t fill(uint32_t *next)
{
	uint32_t before = folds();
	uint64_t given = 0;

	while (folds() == before && o.table->used_nodes <= o.table->nodes / 2) {
		given += give(*next, BATCH, 1);
		*next += BATCH;
	}
	SYNTHETIC_AWAIT(folds() != before);
	return given;
}

/* Waits for the end of a folding: no node is hidden. */
static bool is_settled(void)
{
	for (uint32_t i = 0; i < o.table->nodes; i++) {
		uint64_t id = __atomic_load_n(&observer_node(&o, PROFIL_STACK_ROOTS + i)->id,
					      __ATOMIC_ACQUIRE);

		if (id && !(id & 1))
			return false;
	}
	return true;
}

/* Checks the tree. Returns the samples of all nodes, and how many of the first leaves are there. */
static uint64_t check(uint32_t *hot)
{
	uint64_t sum = o.table->stack_lost;

	*hot = 0;
	for (uint32_t i = 0; i < o.table->nodes; i++) {
		const struct profil_node *node = observer_node(&o, PROFIL_STACK_ROOTS + i);
		uint32_t offset = profil_place_offset(node->place);

		sum += node->count;
		if (!node->id) {
			cr_assert_eq(node->count, 0, "a free node has samples");
			continue;
		}
		cr_assert(node->parent < PROFIL_STACK_ROOTS || observer_node(&o, node->parent)->id,
			  "a caller is free");
		*hot += offset >= SYNTH_LEAF && offset < SYNTH_LEAF + HOT && node->count >= 100;
	}
	return sum;
}

/*
 * Checks that the tree has @given samples, besides those of threads of the machine that end: these
 * have a place each. It is looked at again when one has come meanwhile.
 */
static void check_sum(uint64_t given, uint32_t *hot)
{
	uint64_t before, sum, after = observer_sum(&o);
	int tries = 1000;

	do {
		before = after;
		sum = check(hot);
		after = observer_sum(&o);
	} while (tries-- && (before != after || sum != given + after));
	cr_expect_eq(sum, given + after, "%llu instead of %llu", (unsigned long long)sum,
		     (unsigned long long)(given + after));
}

Test(synth_folding, frees_the_coldest_nodes_and_keeps_all_samples)
{
	uint32_t next = HOT, hot;
	uint64_t given;

	open_machine();
	given = give(0, HOT, 100);
	for (int i = 0; i < 3; i++) {
		given += fill(&next);
		SYNTHETIC_AWAIT(is_settled());
		check_sum(given, &hot);
		if (!i)
			cr_expect_eq(hot, HOT, "leaves with more samples stay: %u", hot);
		cr_expect_lt(o.table->used_nodes, o.table->nodes / 3);
	}
	cr_expect_gt(o.table->folded, o.table->nodes / 4);
	observer_close(&o);
}

static volatile bool stop_walking;

/* Counts at old and new stacks all the while. Returns the samples. */
static void *walk(void *unused)
{
	uint64_t *given = calloc(1, sizeof(*given));

	(void)unused;
	for (uint32_t i = 0; !stop_walking; i++)
		*given += give(i % 100 * 1000, 500, 1);
	return given;
}

Test(synth_folding, loses_no_sample_that_is_counted_meanwhile)
{
	uint32_t next = HOT, hot;
	pthread_t thread;
	uint64_t *walked, given = 0;

	open_machine();
	cr_assert_eq(pthread_create(&thread, NULL, walk, NULL), 0);
	for (int i = 0; i < 3; i++)
		given += fill(&next);
	stop_walking = true;
	pthread_join(thread, (void **)&walked);
	SYNTHETIC_AWAIT(is_settled());
	check_sum(given + *walked, &hot);
	free(walked);
	observer_close(&o);
}

#define PERIOD_NS 10000000u

/* A sample of this process, under the name @command. */
static void sample_as(const char *command)
{
	struct synth_count a = { .user_pc = (uintptr_t)&fill,
				 .ns = PERIOD_NS,
				 .clock_ns = PERIOD_NS,
				 .periods = 1,
				 .flags = PROFIL_TARGET_TICK,
				 .wide = 1,
				 .user_mode = 1 };

	cr_assert_eq(prctl(PR_SET_NAME, command), 0);
	SYNTHETIC_RUN(&s, count, &a);
}

/* The node of group @command; 0: none. */
static uint32_t group_of(const char *command)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < o.table->nodes; i++) {
		const struct profil_node *node = observer_node(&o, PROFIL_STACK_ROOTS + i);
		uint32_t group = profil_place_offset(node->place);

		if (profil_place_group(node->place) != PROFIL_NOTE_GROUP ||
		    strncmp(observer_group(&o, group)->command, command, 16) != 0)
			continue;
		cr_expect_lt(node->parent, PROFIL_STACK_ROOTS, "a group is below the root");
		cr_assert_eq(found, 0, "two stacks of %s", command);
		found = PROFIL_STACK_ROOTS + i;
	}
	return found;
}

/* Samples at @node and below. */
static uint64_t below(uint32_t node)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < o.table->nodes; i++) {
		uint32_t at = PROFIL_STACK_ROOTS + i;

		while (at != node && at >= PROFIL_STACK_ROOTS && observer_node(&o, at)->id)
			at = observer_node(&o, at)->parent;
		if (at == node)
			sum += observer_node(&o, PROFIL_STACK_ROOTS + i)->count;
	}
	return sum;
}

/* Says whether @key is of the sums of group @command. */
static int is_sum_of(const void *command, uint64_t key)
{
	uint32_t group = profil_place_group(key);
	const struct profil_group *g = group ? observer_group(&o, group) : NULL;

	return key & PROFIL_PLACE_SUM && g && !strncmp(g->command, command, sizeof(g->command));
}

Test(synth_folding, keeps_the_samples_of_each_group)
{
	static const char *const name[] = { "one-group", "two-groups" };
	uint64_t expected[] = { 7, 5 };
	uint32_t node[2], next = HOT;

	open_machine();
	while (!observer_sum(&o)) /* the daemon begins to count after the table is there */
		sample_as("warm-up");
	for (int i = 0; i < 2; i++) {
		for (uint64_t n = 0; n < expected[i]; n++)
			sample_as(name[i]);
		node[i] = group_of(name[i]);
		cr_assert(node[i], "%s has a node", name[i]);
		cr_expect_eq(below(node[i]), expected[i], "%s: the same stack", name[i]);
		cr_expect_eq(observer_count_by(&o, is_sum_of, name[i]), expected[i],
			     "%s: as in the flat table", name[i]);
	}
	for (int turn = 0; turn < 4; turn++) {
		top = node[turn % 2];
		expected[turn % 2] += fill(&next);
		SYNTHETIC_AWAIT(is_settled());
		for (int i = 0; i < 2; i++) {
			cr_expect_eq(group_of(name[i]), node[i], "the node of %s stays", name[i]);
			cr_expect_eq(below(node[i]), expected[i], "%s after folding", name[i]);
		}
	}
	cr_expect_gt(o.table->folded, 0);
	observer_close(&o);
}
