/* branches.bpf.h - counts the CPU's records of taken branches
 *
 * CPUs with branch records (Intel LBR, AMD's since Zen 4, Arm BRBE) keep the latest branches that
 * were taken: from where, and to where. A perf event that asks for them has them at its samples,
 * newest first. Each record counts as one sample, in the tree of the attachment. Between the target
 * of a branch and the next branch the code ran without one, so a record has up to three frames:
 *
 *	from + 1	the branch, as the outermost frame
 *	to + 1		its target
 *	end		the branch that was taken next
 *
 * The newest record has no next one, as one before a branch from or to the kernel or another image:
 * its frames are from + 1 and to. Clients take an outer frame's offset for a return address and
 * look it up at the byte before, hence "+ 1" (see unwind.bpf.h). The place of a sample is that of
 * its innermost frame, as with stacks.
 *
 * Only branches from and to user mode are counted, whatever the hardware has filtered. The kernel
 * clears the records when another task gets the CPU. It does not at an exec: up to so many records
 * of the old image are looked up in the new one.
 */
#ifndef PROFIL_BPF_BRANCHES_BPF_H
#define PROFIL_BPF_BRANCHES_BPF_H

#include <stdbool.h>

#include <linux/perf_event.h>

#include "observe.bpf.h"
#include "sample.bpf.h"

#define BRANCHES_MAX 64 /* Arm's; of others 16 or 32 */

/*
 * The records of the sample that this CPU counts. The kernel runs no second program of a perf event
 * on a CPU meanwhile.
 */
struct branches {
	struct perf_branch_entry record[BRANCHES_MAX];
	__u64 group; /* of the running task, as in a key */
	__u64 end;   /* place of the branch that was taken next; 0: none */
	__u32 slot;
	__u32 n;
	__u32 counted; /* those of user mode */
	__u32 lost;    /* of these, in no node */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct branches);
} branches SEC(".maps");

static __always_inline struct branches *branches_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&branches, &zero);
}

/* Addresses of the kernel have the highest bit set. */
static __always_inline bool branch_is_users(const struct perf_branch_entry *e)
{
	return !((e->from | e->to) >> 63);
}

/*
 * The place of @pc of the running process. Without an image: the enum outcome as its offset.
 * Global, as image_number().
 */
__attribute__((noinline)) __u64 branch_place(__u32 slot, __u64 pc)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct profil_observer *o = bpf_map_lookup_elem(&observers, &slot);
	struct spot *s = o ? spot_take(o->epoch) : NULL;
	__u64 place;

	if (!s)
		return OUTCOME_LOST;
	task_memory_read(&s->memory);
	spot_of(slot, s, owner_of(task), pc);
	place = s->image  ? profil_place(0, s->image, (__u32)(pc - s->base))
		: s->kind ? OUTCOME_IMAGE_FULL
			  : OUTCOME_UNMATCHED;
	spot_give();
	return place;
}

/* @place as an outer frame has it. */
static __always_inline __u64 branch_outer(__u64 place)
{
	return profil_place(0, profil_place_image(place), profil_place_offset(place) + 1);
}

/* Says whether the code from @to to @end ran without a taken branch. */
static __always_inline bool branch_runs(__u64 to, __u64 end)
{
	return profil_place_image(to) == profil_place_image(end) &&
	       (__u32)end - (__u32)to < PROFIL_BRANCH_RUN_MAX;
}

/*
 * Counts a branch from @from to @to, both with an image; 0 for @end: the next one is not known.
 * Without room for a node it is counted at the branch. Global, as row_of().
 */
__attribute__((noinline)) int branch_node(__u32 slot, __u64 from, __u64 to, __u64 end)
{
	__u32 branch, node;
	struct table table, *t = &table;

	branch = (__u32)node_number(slot, PROFIL_STACK_WHOLE, branch_outer(from));
	node = branch ? (__u32)node_number(slot, branch, end ? branch_outer(to) : to) : 0;
	if (node && end)
		node = (__u32)node_number(slot, node, end);
	if (!node && table_of(t, slot))
		TABLE_ADD(t, node_full, 1);
	return (int)(node ?: branch);
}

/* Counts record @i. */
static long branch_count(__u32 i, struct branches **context)
{
	struct branches *b = *context;
	const struct perf_branch_entry *e = &b->record[i % BRANCHES_MAX];
	__u64 from, to, end = b->end;

	b->end = 0;
	if (!branch_is_users(e))
		return 0;
	from = branch_place(b->slot, e->from);
	to = branch_place(b->slot, e->to);
	b->end = from; /* the older record's */
	if (!profil_place_image(from) || !profil_place_image(to)) {
		outcome_count(b->slot, (__u32)(profil_place_image(from) ? to : from), 1);
		b->lost++;
		return 0;
	}
	if (!branch_runs(to, end))
		end = 0;
	kept_count(b->slot, (end ?: to) | b->group, 0, (__u32)branch_node(b->slot, from, to, end),
		   1);
	return 0;
}

/* The running task's group, as in a key. Its stack is not the caller's. */
static __attribute__((noinline)) __u64 branches_group(__u32 slot, __u32 n)
{
	return group_of(slot, (void *)bpf_get_current_task_btf(), n);
}

/*
 * Counts this CPU's records for target @index, whose owner pays for the time as for that of a walk
 * of the stack. During an execve() they may be of an image that an unprivileged owner may not read.
 * Global, as row_of().
 */
__attribute__((noinline)) int branches_count(__u32 index)
{
	struct profil_target *target = PLACE(&tables.target[index % PROFIL_MAX_TARGETS]);
	struct branches *b = branches_here();
	struct table table, *t = &table;
	__u32 zero = 0, slot = target->slot;
	struct unwind *u = bpf_map_lookup_elem(&unwinds, &zero);
	bool limited;

	if (!b || !u || !b->counted || !table_of(t, slot) ||
	    (target->flags & PROFIL_TARGET_UNPRIVILEGED && is_in_execve()))
		return 0;
	limited = t->observer->flags & PROFIL_OBSERVER_NARROW;
	b->slot = slot;
	b->end = b->lost = 0;
	if (u->busy || (limited && walk_begin(u, slot) == 1)) {
		outcome_count(slot, OUTCOME_LOST, b->counted);
		b->lost = b->counted;
	} else {
		*(volatile __u32 *)&u->busy = 1;
		b->group = branches_group(slot, b->counted);
		bpf_loop(b->n, branch_count, &b, 0);
		if (limited)
			walk_end(u);
		*(volatile __u32 *)&u->busy = 0;
	}
	if (b->lost)
		TABLE_ADD(t, stack_lost, b->lost);
	__sync_fetch_and_add(&target->total, b->counted);
	return 0;
}

/* Counts the records for the wide attachment @i, if it is on the event @flags. Global, as
 * observe_wide_one(). */
__attribute__((noinline)) int branches_wide(__u32 i, __u32 flags)
{
	const struct profil_target *target = wide_target(i);

	if ((target->flags & (PROFIL_TARGET_CLOCKS | PROFIL_TARGET_CLOSED)) == flags &&
	    (scope_is_all(target->slot) || scope_of(target->slot) == SCOPE_HOLDS))
		branches_count(wide_index(i));
	return 0;
}

/* Counts the records for the target of @entry. Global, as insert(). */
__attribute__((noinline)) int branches_entry(__u64 entry)
{
	const struct task_struct *task = (void *)bpf_get_current_task_btf();

	if (!is_missed(task, entry, true))
		branches_count(profil_entry_target(entry));
	return 0;
}

/* Looks at record @i. */
static long branch_look(__u32 i, struct branches **context)
{
	struct branches *b = *context;

	b->counted += branch_is_users(&b->record[i % BRANCHES_MAX]);
	return 0;
}

/* Counts the first @n records for all attachments to the running thread on the event @flags. */
static __always_inline void branches_all(__u32 flags, __u32 n)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct branches *b = branches_here();
	__u32 end = buckets(), tgid = tgid_of(task), uid;

	if (!b || !task->mm)
		return;
	b->n = n < BRANCHES_MAX ? n : BRANCHES_MAX;
	b->counted = 0;
	bpf_loop(b->n, branch_look, &b, 0);
	for (__u32 which = 0; which < 2 && which < end; which++) {
		const struct profil_bucket *bucket = bucket_of(tgid, which);

		for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
			__u64 entry = read_entry(bucket, i);

			if (is_on_clock(entry, tgid, flags))
				branches_entry(entry);
		}
	}
	uid = BPF_CORE_READ(cred_of(task), uid.val);
	for (__u32 i = 0; i < PROFIL_MAX_WIDE && i < *(volatile __u32 *)&tables.wide.n; i++) {
		if (profil_wide_is_for(tables.wide.of[i], uid))
			branches_wide(i, flags);
	}
}

#endif
