/* kernel_stacks.c - call graphs: stacks are complete, exact, and add up to the samples */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/wire.h"
#include "base/cleanup.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/observer.h"

DAEMON_SUITE(kernel_stacks, "--rate", TICKS_RATE);

#define SPELL_NS \
	(100 * TICKS_PERIOD_NS) /* no more than TICKS_TOLERANCE of its samples may be missing */

#define WITH_FRAME_POINTER __attribute__((noinline, optimize("no-omit-frame-pointer")))

static volatile unsigned long spun;

WITH_FRAME_POINTER static void spin(uint64_t ns)
{
	struct timespec used;

	do {
		for (int i = 0; i < 1000000; i++)
			spun += (unsigned int)i;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	} while ((uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec < ns);
}

WITH_FRAME_POINTER static void recur(unsigned int depth, uint64_t ns)
{
	if (depth)
		recur(depth - 1, ns);
	else
		spin(ns);
	spun++; /* no tail call */
}

/* The same function again: its frames are other nodes of the tree. */
WITH_FRAME_POINTER static void recur_elsewhere(unsigned int depth, uint64_t ns)
{
	if (depth)
		recur_elsewhere(depth - 1, ns);
	else
		spin(ns);
	spun--;
}

/* Observes a child that does @work, or recurs @depth times when that is NULL. */
static void observe_work(struct observer *o, const struct profil_msg_observe *ask,
			 void (*work)(void), unsigned int depth)
{
	int go[2], status;
	pid_t pid;
	char byte = 0;

	cr_assert_eq(pipe(go), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid) {
		if (read(go[0], &byte, 1) == 1 && work) {
			work();
		} else if (!work) {
			recur(depth, SPELL_NS / 2);
			recur_elsewhere(depth, SPELL_NS);
		}
		_exit(0);
	}
	cr_assert_eq(observer_open(o, &d, ask), 0);
	if (ask->scope == PROFIL_SCOPE_PROCESSES)
		cr_assert_eq(observer_add(o, pid), 0);
	cr_assert_eq(write(go[1], &byte, 1), 1);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && !WEXITSTATUS(status), "wait status 0x%x",
		  (unsigned int)status);
	close(go[0]);
	close(go[1]);
}

static void observe_recursion(struct observer *o, const struct profil_msg_observe *ask,
			      unsigned int depth)
{
	observe_work(o, ask, NULL, depth);
}

static void observe_child(struct observer *o, const struct profil_msg_observe *ask,
			  void (*work)(void))
{
	observe_work(o, ask, work, 0);
}

static unsigned int kind_of(const struct observer *o, const struct profil_node *node)
{
	uint32_t at = profil_place_image(node->place) - 1;
	const struct profil_image *page =
		(const struct profil_image *)((const char *)o->table +
					      (size_t)o->table->image_page * PROFIL_TABLE_PAGE);

	return page[at].kind;
}

/* The number of consecutive frames that return to the same place: those of the recursion. */
static unsigned int recursions_of(const struct observer *o, const struct profil_node *leaf)
{
	uint64_t place = 0;
	unsigned int n = 0;

	if (leaf->parent >= PROFIL_STACK_ROOTS && kind_of(o, leaf) == PROFIL_IMAGE_KERNEL)
		leaf = observer_node(
			o, leaf->parent); /* the user's frame that the kernel interrupted */
	if (leaf->parent < PROFIL_STACK_ROOTS)
		return 0;
	leaf = observer_node(o, leaf->parent); /* the innermost recur(), at its call of spin() */
	for (; leaf->parent >= PROFIL_STACK_ROOTS; n++) {
		leaf = observer_node(o, leaf->parent);
		if (place && leaf->place != place)
			break;
		place = leaf->place;
	}
	return n;
}

struct stacks {
	uint64_t samples;
	uint64_t exact; /* with exactly the wanted number of recursions */
};

static struct stacks read_stacks(const struct observer *o, unsigned int depth)
{
	struct stacks s = { 0 };

	for (uint32_t i = 0; i < o->table->nodes; i++) {
		const struct profil_node *node = observer_node(o, PROFIL_STACK_ROOTS + i);

		s.samples += node->count;
		if (node->count && recursions_of(o, node) == depth)
			s.exact += node->count;
	}
	return s;
}

static void expect_recursion(unsigned int depth)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	struct observer o;
	struct stacks s;

	ask.stack_mode = PROFIL_STACK_FP;
	observe_recursion(&o, &ask, depth);
	s = read_stacks(&o, depth);
	cr_expect_eq(s.samples + o.table->stack_lost, observer_check(&o));
	cr_expect_eq(o.table->stack_lost, 0);
	/* Others are in clock_gettime(), which has no frame pointer: its caller is skipped. */
	cr_expect_gt(s.exact, 0, "none of %lu stacks has %u recursions", (unsigned long)s.samples,
		     depth);
	observer_close(&o);
}

Test(kernel_stacks, follow_frame_pointers_through_a_recursion)
{
	expect_recursion(1);
	expect_recursion(30);
	expect_recursion(110);
}

Test(kernel_stacks, marks_stacks_of_more_than_255_frames_as_deep)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	uint64_t deep = 0, all = 0;
	struct observer o;

	ask.stack_mode = PROFIL_STACK_FP;
	observe_recursion(&o, &ask, 300);
	for (uint32_t i = 0; i < o.table->nodes; i++) {
		const struct profil_node *node = observer_node(&o, PROFIL_STACK_ROOTS + i),
					 *at = node;

		all += node->count;
		while (at->parent >= PROFIL_STACK_ROOTS)
			at = observer_node(&o, at->parent);
		deep += at->parent == PROFIL_STACK_DEEP ? node->count : 0;
	}
	cr_expect_gt(deep, 0, "none of %lu", (unsigned long)all);
	observer_close(&o);
}

Test(kernel_stacks, count_in_an_outer_frame_when_the_tree_is_full)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	struct observer o;
	struct stacks s;

	ask.stack_mode = PROFIL_STACK_FP;
	ask.nodes = 1; /* rounded up to a page of 170: two recursions of 120 need more */
	observe_recursion(&o, &ask, 3);
	observer_close(&o);
	observe_recursion(&o, &ask, 120);
	s = read_stacks(&o, 120);
	cr_expect_gt(o.table->node_full, 0);
	cr_expect_eq(s.samples + o.table->stack_lost, observer_check(&o));
	observer_close(&o);
}

/*
 * The machine goes on: a sample between the daemon's reading of the total and the end of the
 * attachment is in the table alone.
 */
Test(kernel_stacks, of_the_whole_machine_include_every_process)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_MACHINE, TICKS_PERIOD_NS);
	struct profil_header detach;
	struct observer o;
	struct stacks s;

	ask.stack_mode = PROFIL_STACK_FP;
	observe_recursion(&o, &ask, 77);
	wire_header(&detach, PROFIL_MSG_DETACH, sizeof(detach), 0, 0);
	cr_assert_eq(observer_take(&o, &detach), 0);
	s = read_stacks(&o, 77);
	cr_expect_eq(s.samples + o.table->stack_lost, observer_sum(&o));
	cr_expect_leq(observer_total(&o), observer_sum(&o));
	cr_expect_gt(s.exact, 0, "no stack has 77 recursions");
	observer_close(&o);
}

/* --- frames of the kernel --------------------------------------------------------------------- */

static const struct profil_node *parent_of(const struct observer *o, const struct profil_node *node)
{
	return node->parent < PROFIL_STACK_ROOTS ? NULL : observer_node(o, node->parent);
}

static void read_zeros(void)
{
	static char buffer[1 << 20];
	__cleanup(closep) int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct timespec used;

	do {
		for (int i = 0; i < 20; i++)
			spun += (unsigned long)read(fd, buffer, sizeof(buffer));
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	} while ((uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec < SPELL_NS);
}

Test(kernel_stacks, have_kernel_frames_below_user_frames)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	uint64_t in_kernel = 0, with_callers = 0;
	struct observer o;

	ask.stack_mode = PROFIL_STACK_FP;
	ask.flags |= PROFIL_OBSERVE_KERNEL_STACKS;
	observe_child(&o, &ask, read_zeros);
	for (uint32_t i = 0; i < o.table->nodes; i++) {
		const struct profil_node *node = observer_node(&o, PROFIL_STACK_ROOTS + i);
		const struct profil_node *out = parent_of(&o, node);

		if (!node->place || kind_of(&o, node) != PROFIL_IMAGE_KERNEL)
			continue;
		in_kernel += node->count;
		with_callers += out && kind_of(&o, out) == PROFIL_IMAGE_KERNEL ? node->count : 0;
	}
	for (uint32_t i = 0; i < o.table->nodes; i++) {
		const struct profil_node *node = observer_node(&o, PROFIL_STACK_ROOTS + i);
		const struct profil_node *out = parent_of(&o, node);

		cr_expect(!node->place || !out || kind_of(&o, out) != PROFIL_IMAGE_KERNEL ||
				  kind_of(&o, node) == PROFIL_IMAGE_KERNEL,
			  "a user frame is below a kernel frame");
	}
	cr_expect_gt(with_callers, 0, "none of %lu", (unsigned long)in_kernel);
	observer_close(&o);
}

/* --- equal call paths ------------------------------------------------------------------------- */

/* Says whether the frame of @node is in the file @name, of any directory; NULL: any file. */
static int is_in(const struct observer *o, const struct profil_node *node, const char *name)
{
	const struct profil_image *image = observer_image(o, profil_place_image(node->place));
	const char *path = image ? observer_path(image) : "", *base = strrchr(path, '/');

	return !name || (base && !strcmp(base + 1, name));
}

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
		found += is_in(o, node[i], name);
	}
	return found;
}

#define PROCESSES 4

static void recur_in_children(void)
{
	for (unsigned int i = 0; i < PROCESSES; i++) {
		pid_t pid = fork();

		if (!pid) {
			recur(90, SPELL_NS / 2);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

/* tests/programs/image.c is position-independent, so that each run has it at other addresses. */
static void run_programs(void)
{
	const char *build = getenv("BUILD");
	char command[4096];

	snprintf(command, sizeof(command),
		 "exec %s/tests/programs/image after </dev/null >/dev/null",
		 build ? build : "build");
	for (unsigned int i = 0; i < PROCESSES; i++) {
		if (system(command))
			_exit(1);
	}
}

/* Expects @least nodes in file @name, or in any. */
static void expect_merged(void (*work)(void), const char *name, unsigned int least)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	struct observer o;

	ask.stack_mode = PROFIL_STACK_FP;
	observe_child(&o, &ask, work);
	cr_expect_geq(expect_merged_nodes(&o, name), least);
	cr_expect_eq(o.table->node_full, 0);
	observer_close(&o);
}

Test(kernel_stacks, of_children_are_the_nodes_of_their_parent)
{
	expect_merged(recur_in_children, NULL, 90);
}

Test(kernel_stacks, of_a_program_are_the_same_nodes_at_any_address)
{
	expect_merged(run_programs, "image", 1);
}
