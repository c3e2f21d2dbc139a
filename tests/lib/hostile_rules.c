/* hostile_rules.c - a client whose unwind rules are missing, or change during the walk */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/unwind_maps.h"
#include "hostile_rules.h"
#include "hostile_stacks.h"

#define DEPTH 50

/* Sets the result of the search for rules of every image of @o. */
static void look_at_all(const struct observer *o, enum profil_unwind_looked looked)
{
	size_t bytes = (size_t)o->table->unwind_pages * PROFIL_UNWIND_PAGE;
	char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, o->unwind, 0);
	struct profil_unwind_image *image =
		(void *)(map + (size_t)PROFIL_UNWIND_IMAGE_PAGE * PROFIL_UNWIND_PAGE);

	cr_assert(map != MAP_FAILED);
	cr_assert_gt(o->table->images, 0);
	for (uint32_t i = 0; i < o->table->images; i++)
		image[i].looked = looked;
	munmap(map, bytes);
}

void rules_expect_missing(const struct daemon *d, enum profil_unwind_looked looked,
			  enum profil_stack_root root, struct stack_demand demand)
{
	struct profil_msg_observe ask = stacks_ask(PROFIL_SCOPE_PROCESSES);
	struct stack_program recursion = { .run = run_recursion,
					   .cpu_ns = demand.cpu_ns,
					   .depth = DEPTH };
	uint64_t below[PROFIL_STACK_ROOTS], all;
	struct observer o;
	struct child c;

	ask.stack_mode = PROFIL_STACK_CFI;
	ask.unwind_rows = 4096;
	c = stacks_open(&o, d, &ask, &recursion);
	look_at_all(&o, looked);
	child_run(&c);
	all = stacks_count_roots(&o, below);
	stacks_expect_share(demand, below[root], all, "code without rules");
	observer_close(&o);
}

/* --- lies ------------------------------------------------------------------------------------- */

struct liar {
	atomic_bool lying;
	uint64_t *word;
	size_t n; /* words */
};

/* A random row or image entry, which is plausible at times. */
static uint64_t lie(unsigned int *seed)
{
	uint64_t a = (uint64_t)rand_r(seed), b = (uint64_t)rand_r(seed);

	switch (rand_r(seed) % 4) {
	case 0: /* two page numbers, or a number of pages and a flag */
		return (a % 4096) << 32 | b % 4096;
	case 1: /* a row */
		return (a & 0x3f) << 56 | (b & 0xff) << 48 | (a >> 8 & 0xff) << 32 | (b & 0xffffff);
	case 2:
		return a << 33 ^ b << 16 ^ a;
	default:
		return ~0ull;
	}
}

static void *tell_lies(void *arg)
{
	struct liar *liar = arg;
	unsigned int seed = 26;

	while (liar->lying) {
		/* The first pages hold the locations of all others. */
		size_t n = rand_r(&seed) % 2 ? liar->n : 8 * 512;

		*(volatile uint64_t *)&liar->word[(size_t)rand_r(&seed) % n] = lie(&seed);
	}
	return NULL;
}

/* Maps the rules of @o and changes them in @thread. */
static void liar_start(struct liar *liar, pthread_t *thread, const struct observer *o)
{
	cr_assert_geq(o->unwind, 0);
	liar->n = (size_t)o->table->unwind_pages * PROFIL_UNWIND_PAGE / sizeof(uint64_t);
	liar->word = mmap(NULL, liar->n * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED,
			  o->unwind, 0);
	cr_assert(liar->word != MAP_FAILED);
	liar->lying = true;
	cr_assert_eq(pthread_create(thread, NULL, tell_lies, liar), 0);
}

static void liar_stop(struct liar *liar, pthread_t thread)
{
	liar->lying = false;
	pthread_join(thread, NULL);
	munmap(liar->word, liar->n * sizeof(uint64_t));
}

void rules_expect_lies_spoil_no_other(const struct daemon *d, struct stack_demand demand)
{
	struct profil_msg_observe ask = stacks_ask(PROFIL_SCOPE_PROCESSES);
	struct stack_program recursion = { .run = run_recursion,
					   .cpu_ns = demand.cpu_ns,
					   .depth = DEPTH };
	struct stack_program endless = { .run = endless_stack.run, .cpu_ns = demand.cpu_ns };
	uint64_t below[PROFIL_STACK_ROOTS], all;
	struct observer liars, neighbour;
	struct child lied_about, other;
	struct liar liar;
	pthread_t thread;

	ask.stack_mode = PROFIL_STACK_AUTO;
	ask.unwind_rows = 4096;
	lied_about = stacks_open(&liars, d, &ask, &recursion);
	liar_start(&liar, &thread, &liars);
	child_start(&lied_about);
	ask.stack_mode = PROFIL_STACK_FP;
	other = stacks_open(&neighbour, d, &ask, &endless);
	child_start(&other);
	child_wait(&lied_about);
	child_wait(&other);
	liar_stop(&liar, thread);

	all = stacks_count_roots(&liars, below);
	cr_expect_gt(all, 20);
	cr_expect_eq(all + liars.table->stack_lost, observer_check(&liars));
	all = stacks_count_roots(&neighbour, below);
	cr_expect_eq(all + neighbour.table->stack_lost, observer_check(&neighbour));
	stacks_expect_share(demand, below[PROFIL_STACK_DEEP], all, "a neighbour of lies");
	observer_close(&liars);
	observer_close(&neighbour);
}
