/* fold.bpf.h - folds the coldest calls of the machine's tree into their callers */
#ifndef PROFIL_BPF_FOLD_BPF_H
#define PROFIL_BPF_FOLD_BPF_H

/*
 * The tree of the machine's profile has a constant size. When it fills up, the daemon
 * (profild/bpf/tree_folder.c) chooses nodes to be freed, whose samples go to their nearest caller
 * that stays. Walks enter nodes meanwhile, so a node is freed in three steps:
 *
 *	HIDE	clears bit 0 of its id, which is set in all nodes that node_number() finds. A walk
 *		that comes by then claims another node for the same call.
 *	wait	until all programs have ended that have found it, and change the observer's epoch,
 *		without which no node that was found earlier is used: that of a CPU's latest stack,
 *		and that of a thread's latest sample (kept_node()).
 *	MOVE	adds its count to the other node and clears it; or SHOW, if a walk has entered a
 *		callee below it in the meantime.
 *
 * MOVE is between two increments of the header's `folds`, so that a reader of the tree notices it.
 * No sample is lost: a program that has found a node may count there until the wait is over.
 */

#include "core/fold.h"
#include "call_tree.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct profil_fold_moves);
} fold_moves SEC(".maps");

/* Node @number of the table in @slot. */
static __always_inline struct profil_node *fold_node(const struct table *t, __u32 number)
{
	__u32 page = (number - PROFIL_STACK_ROOTS) / PROFIL_PAGE_NODES;
	__u32 at = number - PROFIL_STACK_ROOTS - page * PROFIL_PAGE_NODES;
	struct profil_node *nodes;

	if (number < PROFIL_STACK_ROOTS || page >= t->observer->node_pages)
		return NULL;
	nodes = table_page(t, t->observer->node_page + page);
	asm volatile("" : "+r"(at));
	return nodes && at < PROFIL_PAGE_NODES ? &nodes[at] : NULL;
}

static __always_inline void fold_move(const struct table *t, __u32 slot, struct profil_node *node,
				      __u32 to)
{
	__u32 count = __sync_lock_test_and_set(&node->count, 0);

	if (count) {
		TABLE_ADD(t, folded, count);
		if (to && count <= KEPT_COUNT_MOST)
			node_count(slot, to, count);
		else
			TABLE_ADD(t, stack_lost, count);
	}
	node->parent = 0;
	*(volatile __u64 *)&node->place = 0;
	__sync_lock_test_and_set(&node->id, 0);
	TABLE_ADD(t, used_nodes, ~0u); /* -1 */
}

static long fold_one(__u32 i, struct profil_fold **context)
{
	const struct profil_fold *f = *context;
	__u32 zero = 0, slot = f->slot;
	const struct profil_fold_moves *moves = bpf_map_lookup_elem(&fold_moves, &zero);
	const struct profil_fold_move *move;
	struct profil_node *node;
	struct table table, *t = &table;

	if (!moves || !table_of(t, slot) || t->observer->epoch != f->epoch)
		return 1;
	move = &moves->move[i % PROFIL_FOLD_MOVES];
	node = fold_node(t, move->node);
	if (!node || !node->id)
		return 0;
	if (f->op == PROFIL_FOLD_HIDE)
		__sync_fetch_and_and(&node->id, ~1ull);
	else if (f->op == PROFIL_FOLD_SHOW)
		__sync_fetch_and_or(&node->id, 1);
	else if (!(node->id & 1))
		fold_move(t, slot, node, move->to);
	return 0;
}

/* Global, so that the verifier checks it once. */
__attribute__((noinline)) int fold_all(__u32 slot, __u32 epoch, __u32 op, __u32 n)
{
	struct profil_fold fold = { .slot = slot, .epoch = epoch, .op = op, .n = n };
	struct profil_fold *f = &fold;
	struct table table, *t = &table;

	if (!table_of(t, slot) || t->observer->epoch != epoch)
		return 0;
	if (op == PROFIL_FOLD_MOVE)
		TABLE_ADD(t, folds, 1);
	bpf_loop(n, fold_one, &f, 0);
	if (op == PROFIL_FOLD_MOVE)
		TABLE_ADD(t, folds, 1);
	return 0;
}

#endif
