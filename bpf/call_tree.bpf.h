/* call_tree.bpf.h - enters the stack of a sample into the attachment's tree of calling contexts */
#ifndef PROFIL_BPF_CALL_TREE_BPF_H
#define PROFIL_BPF_CALL_TREE_BPF_H

/*
 * A node of the tree is (parent, place). It is claimed by compare-and-swap of a hash of both, whose
 * bit 0 is set. It is never removed, except by folding (fold.bpf.h). The outermost frame's parent
 * is the root that says how the walk ended, or below that the node of the sample's group. The
 * innermost frame has the same place as the sample has without stacks, so totals agree; in kernel
 * mode that is the kernel's place, with the other kernel frames between it and the user's if the
 * attachment asked for them. Without room for a node, the sample is counted at the last frame that
 * has one, and in node_full.
 */

#include "group.bpf.h"
#include "unwind.bpf.h"

/* --- the tree --------------------------------------------------------------------------------- */

#define NODE_TRIES 8

/* The number of the node (@parent, @place); 0: there is no room. Global, as row_of(). */
__attribute__((noinline)) int node_number(__u32 slot, __u32 parent, __u64 place)
{
	__u64 id = mix(place ^ mix((__u64)parent + 1)) | 1, h = mix(id);
	struct table table, *t = &table;

	if (!table_of(t, slot))
		return 0;
	for (int turn = 0; turn < 2; turn++, h = mix(h)) {
		__u32 page = (__u32)((h >> 32) * t->observer->node_pages >> 32);
		__u32 at = (__u32)((h & 0xffff) * PROFIL_PAGE_NODES >> 16);
		struct profil_node *nodes = table_page(t, t->observer->node_page + page);

		for (int i = 0; nodes && i < NODE_TRIES; i++) {
			__u32 here =
				at + i < PROFIL_PAGE_NODES ? at + i : at + i - PROFIL_PAGE_NODES;
			struct profil_node *node;
			__u64 seen;

			if (here >= PROFIL_PAGE_NODES)
				break;
			node = &nodes[here];
			seen = *(volatile __u64 *)&node->id;

			if (!seen) {
				seen = __sync_val_compare_and_swap(&node->id, 0, id);
				if (!seen) {
					node->parent = parent;
					*(volatile __u64 *)&node->place = place;
					TABLE_ADD(t, used_nodes, 1);
				}
			}
			if (!seen || seen == id)
				return (int)(PROFIL_STACK_ROOTS + page * PROFIL_PAGE_NODES + here);
		}
	}
	return 0;
}

/* Adds @n to the count of node @number. Global, as row_of(). */
__attribute__((noinline)) int node_count(__u32 slot, __u32 number, __u32 n)
{
	__u32 page = (number - PROFIL_STACK_ROOTS) / PROFIL_PAGE_NODES;
	__u32 at = number - PROFIL_STACK_ROOTS - page * PROFIL_PAGE_NODES;
	struct profil_node *nodes;
	struct table t;

	if (!table_of(&t, slot))
		return 0;
	nodes = table_page(&t, t.observer->node_page + page);
	asm volatile("" : "+r"(at));
	if (!nodes || at >= PROFIL_PAGE_NODES)
		return 0;
	if (*(volatile __u32 *)&nodes[at].count < PLACE_TOP)
		__sync_fetch_and_add(&nodes[at].count, n);
	else
		TABLE_ADD(&t, stack_lost, n);
	return 0;
}

/* Enters the next frame, the @i-th from the outermost one, into the tree. */
static long descend(__u32 i, struct unwind **context)
{
	struct unwind *u = *context;
	struct latest_stack *latest = &u->latest;
	__u32 at = (u->left - 1) & PROFIL_FRAMES_MAX; /* a mask: always a valid index */
	int node;

	if (!u->left)
		return 1;
	i &= PROFIL_FRAMES_MAX;
	if (latest->common && i < latest->frames && latest->place[i] == u->place[at]) {
		u->node = latest->node[i];
		u->left = at;
		return 0;
	}
	latest->common = 0;
	latest->frames = i;
	node = node_number(u->slot, u->node, u->place[at]);
	if (!node)
		return 1;
	latest->place[i] = u->place[at];
	latest->node[i] = (__u32)node;
	latest->frames = i + 1;
	u->node = (__u32)node;
	u->left = at;
	return 0;
}

/* The group of the sample that place_count_of() has just counted on this CPU in @slot. */
static __always_inline __u32 counted_group(__u32 slot)
{
	__u32 zero = 0;
	const struct cpu_ranges *cpu = bpf_map_lookup_elem(&cpu_ranges, &zero);

	/* An NMI may have counted a sample of its own meanwhile. */
	return cpu && cpu->counted.slot == slot ? cpu->counted.group : 0;
}

/* The node of the sample's group below @root, where the tree has groups; else @root. */
static __always_inline __u32 group_node(const struct table *t, __u32 slot, __u32 root)
{
	__u32 by = t->observer->group_by;
	__u32 group = by & PROFIL_GROUP_THREAD ? (__u32)group_number(slot)
		      : by & PROFIL_GROUP_SUMS ? counted_group(slot)
					       : 0;

	if (!group)
		return root;
	return (__u32)node_number(slot, root, profil_place(PROFIL_NOTE_GROUP, 0, group)) ?: root;
}

/* Enters the user's frames. */
static __always_inline void tree_user(struct unwind *u)
{
	struct latest_stack *latest = &u->latest;

	latest->common = latest->epoch == u->epoch && latest->root == u->top;
	if (!latest->common)
		latest->frames = 0;
	latest->epoch = u->epoch;
	latest->root = u->top;
	u->node = u->top;
	u->left = u->depth;
	bpf_loop(PROFIL_FRAMES_MAX, descend, &u, 0);
}

/* The place of the kernel's @pc, the same as part_count() uses. Global, as row_of(). */
__attribute__((noinline)) __u64 kernel_place(__u32 slot, __u64 pc)
{
	struct table table, *t = &table;
	__u64 place = 0;
	struct spot *s;
	__u32 offset;

	s = table_of(t, slot) ? spot_take(t->observer->epoch) : NULL;
	if (!s)
		return 0;
	spot_of(slot, s, KERNEL_OWNER, pc);
	offset = (__u32)(pc - s->base);
	if (t->observer->flags & PROFIL_OBSERVER_HIDES_KERNEL)
		offset = 0;
	if (s->image)
		place = profil_place(0, s->image, offset);
	spot_give();
	return place;
}

/*
 * Enters the next frame of the kernel into the tree. A frame outside of the innermost frame's
 * image, 4 GiB of addresses, is left out: a call of kernel_place() here would exceed the 512 bytes
 * of stack that all functions of a call chain share.
 */
static long descend_kernel(__u32 i __attribute__((unused)), struct unwind **context)
{
	struct unwind *u = *context;
	__u32 at = u->kernel_left - 1;
	__u64 pc = u->kernel[at % KERNEL_STACK];
	int node;

	u->kernel_left = at;
	if (pc >> WINDOW_BITS == u->kernel_window) {
		node = node_number(u->slot, u->node, profil_place(0, u->kernel_image, (__u32)pc));
		if (!node) {
			u->kernel_left = KERNEL_STACK;
			return 1;
		}
		u->node = (__u32)node;
	}
	return u->kernel_left <= u->kernel_from + 1;
}

/*
 * Enters the kernel's frames, from the outermost inwards, without the innermost, whose address is
 * @pc. The frames inside of @pc belong to the clock's own interrupt.
 */
static __always_inline void tree_kernel(struct unwind *u, __u64 pc)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	long bytes = bpf_get_task_stack(task, u->kernel, sizeof(u->kernel), 0);
	__u32 n = bytes > 0 ? (__u32)bytes / 8 : 0, from = 0;

	while (from < n && from < CLOCK_FRAMES && u->kernel[from] != pc)
		from++;
	if (from == CLOCK_FRAMES)
		from = n; /* not found */
	u->kernel_window = pc >> WINDOW_BITS;
	u->kernel_from = from;
	u->kernel_left = n;
	if (n > from + 1)
		bpf_loop(PROFIL_KERNEL_FRAMES_MAX, descend_kernel, &u, 0);
	else
		u->kernel_left = from + 1;
}

/* Enters the frames of @u, then @kernel_pc unless it is 0, and counts @n at the innermost one. */
static __always_inline void tree_count(struct unwind *u, __u64 kernel_pc, __u32 n)
{
	__u64 leaf = kernel_pc ? kernel_place(u->slot, kernel_pc) : 0;
	struct table table, *t = &table;
	int node = 0;

	if (!table_of(t, u->slot))
		return;
	u->leaf_place = kernel_pc ? leaf : u->depth ? u->place[0] : 0;
	if (u->frames == 1) {
		u->node = 0;
		TABLE_ADD(t, stack_lost, n);
		return;
	}
	u->top = group_node(t, u->slot, u->root);
	tree_user(u);
	u->kernel_left = u->kernel_from = 0;
	u->kernel_image = profil_place_image(leaf);
	if (!u->left && leaf && t->observer->flags & PROFIL_OBSERVER_KERNEL_STACKS)
		tree_kernel(u, kernel_pc);
	if (!u->left && u->kernel_left <= u->kernel_from + 1 && leaf) {
		node = node_number(u->slot, u->node, leaf);
		if (node)
			u->node = (__u32)node;
	}
	if (u->left || (leaf && !node))
		TABLE_ADD(t, node_full, n);
	if (u->node >= PROFIL_STACK_ROOTS)
		node_count(u->slot, u->node, n);
	else
		TABLE_ADD(t, stack_lost, n);
}

/* A node's number, and above it the lowest bits of the observer's epoch. */
#define NODE_EPOCH 24
#define NODE_NUMBER ((1u << NODE_EPOCH) - 1)

/* --- samples ---------------------------------------------------------------------------------- */

static __always_inline bool is_in_execve(void)
{
	const struct task_struct *task = (void *)bpf_get_current_task_btf();

	return BPF_CORE_READ_BITFIELD(task, in_execve);
}

/*
 * Counts @n samples at the stack of the running task: the user's frames from @user_pc outwards (0:
 * none), and @kernel_pc as the innermost frame (0: user mode). Returns the node at which they are
 * counted, for kept_node(); below PROFIL_STACK_ROOTS: none. @held: the caller has set u->busy, and
 * reads the results before it clears it. Global, as row_of().
 */
__attribute__((noinline)) int stack_count(__u32 slot, __u64 user_pc, __u64 kernel_pc, __u32 n,
					  bool held)
{
	__u32 zero = 0;
	struct unwind *u = bpf_map_lookup_elem(&unwinds, &zero);
	struct table table, *t = &table;
	__u32 node;

	if (!u || !table_of(t, slot))
		return 0;
	if (u->busy && !held) {
		TABLE_ADD(t, stack_lost, n);
		return 0;
	}
	*(volatile __u32 *)&u->busy = 1;
	u->slot = slot;
	u->epoch = t->observer->epoch;
	u->mode = t->observer->stack_mode;
	u->native = t->observer->flags & PROFIL_OBSERVER_NATIVE;
	u->depth = 0;
	u->frames = PROFIL_FRAMES_MAX;
	u->root = PROFIL_STACK_WHOLE;
	u->limited = t->observer->flags & PROFIL_OBSERVER_NARROW;
	if (u->limited)
		u->frames = walk_begin(u, slot);
	task_memory_read(&u->memory);
	functions_begin(t, slot);
	if (user_pc && u->memory.mm)
		stack_walk(u, user_pc, kernel_pc);
	functions_end(t, slot);
	/* During execve() the old image's pc is in no mapping of the new one. */
	if (!u->depth && kernel_pc && is_in_execve())
		u->root = PROFIL_STACK_WHOLE;
	tree_count(u, kernel_pc, n);
	if (u->limited && u->frames > 1)
		walk_end(u);
	node = u->node;
	if (node >= PROFIL_STACK_ROOTS)
		node |= u->epoch << NODE_EPOCH;
	if (!held)
		*(volatile __u32 *)&u->busy = 0;
	return (int)node;
}

/* The number of a node that stack_count() has returned earlier; 0: it may have been folded. */
__attribute__((noinline)) __u32 kept_node(__u32 slot, __u32 kept)
{
	const struct profil_observer *o = bpf_map_lookup_elem(&observers, &slot);

	return o && (o->epoch ^ kept >> NODE_EPOCH) << NODE_EPOCH == 0 ? kept & NODE_NUMBER : 0;
}

#define KEPT_COUNT_MOST 0x03ffffff /* CPUs may add it at once to a counter below PLACE_TOP */

/*
 * Counts @n samples where an earlier one was counted: at its places @key and @folded, and at @node.
 * More than would fit into a place's counter are counted by image, and in no node. Global, as
 * row_of().
 */
__attribute__((noinline)) int kept_count(__u32 slot, __u64 key, __u64 folded, __u32 node, __u64 n)
{
	struct table table, *t = &table;

	if (!table_of(t, slot))
		return 0;
	if (!key)
		outcome_count(slot, OUTCOME_UNMATCHED, n);
#pragma clang loop unroll(disable)
	for (int part = 0; part < 2; part++) {
		__u64 k = part ? folded : key;

		if (k && n <= KEPT_COUNT_MOST)
			place_add_here(slot, k, (__u32)n);
		else if (k)
			image_coarse(slot, k, n);
	}
	if (!t->observer->stack_mode)
		return 0;
	if (node >= PROFIL_STACK_ROOTS && n <= KEPT_COUNT_MOST)
		node_count(slot, node, (__u32)n);
	else
		TABLE_ADD(t, stack_lost, n);
	return 0;
}

#endif
