/* stacks.c - the tree of calls of observed programs: its readers, and what tests expect of it */
#include <criterion/criterion.h>
#include <string.h>

#include "core/wire.h"
#include "stacks.h"

void stacks_expect_share(struct stack_demand demand, uint64_t part, uint64_t all, const char *what)
{
	cr_expect_gt(part, 0, "%s: none of %lu stacks", what, (unsigned long)all);
	if (!demand.percent)
		return;
	cr_expect_gt(all, 20, "%s: only %lu stacks", what, (unsigned long)all);
	cr_expect_geq(part * 100, all * demand.percent, "%s: %lu of %lu stacks", what,
		      (unsigned long)part, (unsigned long)all);
}

struct profil_msg_observe stacks_ask(enum profil_scope scope)
{
	struct profil_msg_observe ask = observer_ask(scope, TICKS_PERIOD_NS);

	ask.stack_mode = PROFIL_STACK_FP;
	return ask;
}

/* child_fork() passes bytes. */
static void run_program(const char *bytes)
{
	const struct stack_program *program = (const void *)bytes;

	program->run(program);
}

struct child stacks_open(struct observer *o, const struct daemon *d,
			 const struct profil_msg_observe *ask, const struct stack_program *program)
{
	struct child c = child_fork(run_program, (const char *)program);

	cr_assert_eq(observer_open(o, d, ask), 0);
	if (ask->scope == PROFIL_SCOPE_PROCESSES)
		cr_assert_eq(observer_add(o, c.pid), 0);
	return c;
}

void stacks_observe(struct observer *o, const struct daemon *d,
		    const struct profil_msg_observe *ask, const struct stack_program *program)
{
	struct child c = stacks_open(o, d, ask, program);

	child_run(&c);
}

/* --- readers ---------------------------------------------------------------------------------- */

/* The node of the caller; NULL: @node is the outermost frame. */
static const struct profil_node *parent_of(const struct observer *o, const struct profil_node *node)
{
	return node->parent < PROFIL_STACK_ROOTS ? NULL : observer_node(o, node->parent);
}

bool stacks_in_kernel(const struct observer *o, const struct profil_node *node)
{
	const struct profil_image *image =
		node->place ? observer_image(o, profil_place_image(node->place)) : NULL;

	return image && image->kind == PROFIL_IMAGE_KERNEL;
}

bool stacks_in_file(const struct observer *o, const struct profil_node *node, const char *name)
{
	const struct profil_image *image = observer_image(o, profil_place_image(node->place));
	const char *path = image ? observer_path(image) : "", *base = strrchr(path, '/');

	return !name || (base && !strcmp(base + 1, name));
}

uint64_t stacks_count_roots(const struct observer *o, uint64_t below[PROFIL_STACK_ROOTS])
{
	uint64_t all = 0;

	memset(below, 0, PROFIL_STACK_ROOTS * sizeof(*below));
	for (uint32_t i = 0; i < o->table->nodes; i++) {
		const struct profil_node *node = observer_node(o, PROFIL_STACK_ROOTS + i),
					 *at = node;
		unsigned int depth = 1;

		for (; at->parent >= PROFIL_STACK_ROOTS; depth++)
			at = observer_node(o, at->parent);
		cr_expect_leq(depth, PROFIL_FRAMES_MAX + 1u);
		if (node->count && at->parent == PROFIL_STACK_DEEP && !o->table->node_full)
			cr_expect_geq(depth, PROFIL_FRAMES_MAX);
		all += node->count;
		below[at->parent] += node->count;
	}
	return all;
}

/* The number of consecutive frames that return to the same place: those of the recursion. */
static unsigned int recursions_of(const struct observer *o, const struct profil_node *leaf)
{
	uint64_t place = 0;
	unsigned int n = 0;

	if (leaf->parent >= PROFIL_STACK_ROOTS && stacks_in_kernel(o, leaf))
		leaf = observer_node(
			o, leaf->parent); /* the user's frame that the kernel interrupted */
	if (leaf->parent < PROFIL_STACK_ROOTS)
		return 0;
	leaf = observer_node(o, leaf->parent); /* the innermost call, at its call of stack_spin() */
	for (; leaf->parent >= PROFIL_STACK_ROOTS; n++) {
		leaf = observer_node(o, leaf->parent);
		if (place && leaf->place != place)
			break;
		place = leaf->place;
	}
	return n;
}

struct stacks stacks_read(const struct observer *o, unsigned int depth)
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

/* --- expectations ----------------------------------------------------------------------------- */

static void observe_recursions(struct observer *o, const struct daemon *d, enum profil_scope scope,
			       unsigned int depth, uint64_t cpu_ns)
{
	struct profil_msg_observe ask = stacks_ask(scope);

	stacks_observe(o, d, &ask,
		       &(struct stack_program){
			       .run = run_two_recursions, .cpu_ns = cpu_ns, .depth = depth });
}

void stacks_expect_recursion(const struct daemon *d, unsigned int depth, struct stack_demand demand)
{
	struct observer o;
	struct stacks s;

	observe_recursions(&o, d, PROFIL_SCOPE_PROCESSES, depth, demand.cpu_ns);
	s = stacks_read(&o, depth);
	cr_expect_eq(s.samples + o.table->stack_lost, observer_check(&o));
	cr_expect_eq(o.table->stack_lost, 0);
	/* The rest is in clock_gettime(), which has no frame pointer: its caller is skipped. */
	stacks_expect_share(demand, s.exact, s.samples, "a recursion");
	observer_close(&o);
}

void stacks_expect_deep(const struct daemon *d, struct stack_demand demand)
{
	uint64_t below[PROFIL_STACK_ROOTS], all;
	struct observer o;

	observe_recursions(&o, d, PROFIL_SCOPE_PROCESSES, PROFIL_FRAMES_MAX + 45, demand.cpu_ns);
	all = stacks_count_roots(&o, below);
	stacks_expect_share(demand, below[PROFIL_STACK_DEEP], all, "a deep recursion");
	observer_close(&o);
}

/*
 * The machine is sampled further: a sample between the daemon's reading of the total and the end of
 * the attachment is in the table alone. Samples of other processes are no part of the share.
 */
void stacks_expect_machine(const struct daemon *d, struct stack_demand demand)
{
	struct profil_header detach;
	struct observer o;
	struct stacks s;

	observe_recursions(&o, d, PROFIL_SCOPE_MACHINE, 77, demand.cpu_ns);
	wire_header(&detach, PROFIL_MSG_DETACH, sizeof(detach), 0, 0);
	cr_assert_eq(observer_take(&o, &detach), 0);
	s = stacks_read(&o, 77);
	cr_expect_eq(s.samples + o.table->stack_lost, observer_sum(&o));
	cr_expect_leq(observer_total(&o), observer_sum(&o));
	stacks_expect_share(demand, s.exact, demand.cpu_ns / TICKS_PERIOD_NS,
			    "a process of the machine");
	observer_close(&o);
}

void stacks_expect_kernel_frames(const struct daemon *d, struct stack_demand demand)
{
	struct profil_msg_observe ask = stacks_ask(PROFIL_SCOPE_PROCESSES);
	uint64_t in_kernel = 0, with_callers = 0;
	struct observer o;

	ask.flags |= PROFIL_OBSERVE_KERNEL_STACKS;
	stacks_observe(
		&o, d, &ask,
		&(struct stack_program){ .run = run_reads_of_zeros, .cpu_ns = demand.cpu_ns });
	for (uint32_t i = 0; i < o.table->nodes; i++) {
		const struct profil_node *node = observer_node(&o, PROFIL_STACK_ROOTS + i);
		const struct profil_node *out = parent_of(&o, node);
		bool called_by_kernel = node->place && out && stacks_in_kernel(&o, out);

		if (stacks_in_kernel(&o, node)) {
			in_kernel += node->count;
			with_callers += called_by_kernel ? node->count : 0;
		} else {
			cr_expect(!called_by_kernel, "a user frame is below a kernel frame");
		}
	}
	stacks_expect_share(demand, with_callers, in_kernel, "a caller in the kernel");
	observer_close(&o);
}
