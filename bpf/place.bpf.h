/* place.bpf.h - counts a sample as a place: an image, an offset in it, and a group */
#ifndef PROFIL_BPF_PLACE_BPF_H
#define PROFIL_BPF_PLACE_BPF_H

/*
 * Places and images
 *
 * An attachment counts its samples in a table (core/observe_maps.h). A sample becomes a place:
 * (group, image, offset of the pc in the image). User space registers no mappings: the BPF program
 * finds image and group at each sample.
 *
 * Image of a pc: spot.bpf.h.
 *
 * Group of a task: all that a group's element shows of a process or thread is part of the group's
 *key, as it is at the sample: names, cgroup and user may change. Each CPU caches the groups of 32
 * processes; a cached group is valid while the process has the same look (look_here()). When groups
 * distinguish threads, each sample looks its group up.
 *
 * The table is shared by all CPUs and has no lock. An element (image, group, place) is free while
 * its first word is 0; a sample claims it by compare-and-swap of that word. Elements are never
 * released, so a free one ends a search. An image's first word is a hash of its identity: a file's
 * inode, device, generation and which 4 GiB of it; a process, for its code without a file (ANON);
 * the vdso; the kernel. The sample that claims an image or group fills it in (path and build id:
 * path.bpf.h, image.bpf.h), then sets `ready`. Other CPUs count in it at once; clients wait for
 * `ready`. A place is a key and a counter, in one of two cache lines of five places each.
 *
 * Each sample is in exactly one part of the total: a place; its image's `coarse` if both lines are
 * full; image_full if there is no room for the image; unmatched if the pc is in no mapping; lost. A
 * sample without room for its group is counted in group 0, and in group_full.
 *
 * A sample in kernel mode is counted at the kernel's pc. It is counted again at the user's pc, as a
 * FOLDED place, which is not part of the total.
 */

#include "group.bpf.h"
#include "interpreter.bpf.h"
#include "spot.bpf.h"
#include "table.bpf.h"

/* At this value a counter is full. It is far below 2^32, so adds of all CPUs at once cannot wrap.
 */
#define PLACE_TOP 0xf0000000u

static __always_inline bool line_count(const struct table *t, __u32 at, __u64 key, __u32 n)
{
	const struct profil_observer *o = t->observer;
	struct profil_line *line = table_page(t, o->place_page + at / PROFIL_PAGE_LINES);

	if (!line)
		return false;
	line += at % PROFIL_PAGE_LINES;
	for (int i = 0; i < PROFIL_LINE_PLACES; i++) {
		__u64 seen = *(volatile __u64 *)&line->key[i];

		if (!seen) {
			seen = __sync_val_compare_and_swap(&line->key[i], 0, key);
			if (!seen) {
				TABLE_ADD(t, used_places, 1);
				seen = key;
			}
		}
		if (seen != key)
			continue;
		if (*(volatile __u32 *)&line->count[i] >= PLACE_TOP)
			return false;
		__sync_fetch_and_add(&line->count[i], n);
		return true;
	}
	return false;
}

/*
 * Counts @n at @key, and at @sum unless it is 0. Returns a mask of those without room: 1 for @key,
 * 2 for @sum. One function for both, because a call and its map look-ups take as long as the
 * counting itself. Global, as image_number().
 */
__attribute__((noinline)) int keys_count(__u32 slot, __u64 key, __u64 sum, __u32 n)
{
	struct table table, *t = &table;
	int full = 0;

	if (!table_of(t, slot))
		return 0;
#pragma clang loop unroll(disable)
	for (int part = 0; part < 2; part++) {
		__u64 k = part ? sum : key, h = mix(k);
		__u32 mask = t->observer->line_mask;

		if (k && !line_count(t, (__u32)h & mask, k, n) &&
		    !line_count(t, (__u32)(h >> 32) & mask, k, n))
			full |= 1 << part;
	}
	return full;
}

/* Counts @n samples in the image of @key, for whose place there was no room. Global, as
 * image_number(). */
__attribute__((noinline)) int image_coarse(__u32 slot, __u64 key, __u64 n)
{
	struct profil_image *image;
	struct table t;

	if (!table_of(&t, slot))
		return 0;
	image = image_at(&t, profil_place_image(key));
	if (image)
		__sync_fetch_and_add(&image->coarse[key >> 63], n);
	return 0;
}

enum outcome { OUTCOME_UNMATCHED, OUTCOME_IMAGE_FULL, OUTCOME_GROUP_FULL, OUTCOME_LOST };

/* Counts @n samples that have no place, by their outcome. Global, as image_number(). */
__attribute__((noinline)) int outcome_count(__u32 slot, __u32 outcome, __u64 n)
{
	struct table t;

	if (!table_of(&t, slot))
		return 0;
	switch (outcome) {
	case OUTCOME_UNMATCHED:
		TABLE_ADD(&t, unmatched, n);
		break;
	case OUTCOME_IMAGE_FULL:
		TABLE_ADD(&t, image_full, n);
		break;
	case OUTCOME_GROUP_FULL:
		TABLE_ADD(&t, group_full, n);
		break;
	default:
		TABLE_ADD(&t, lost, n);
	}
	return 0;
}

#define GROUP_BITS ((PROFIL_PLACE_GROUPS - 1ull) << 48)

/* Counts @n samples at @key, which has the group. */
static __always_inline int place_add_here(__u32 slot, __u64 key, __u32 n)
{
	const struct profil_observer *o = bpf_map_lookup_elem(&observers, &slot);
	__u64 sum = 0;
	int full;

	if (!o)
		return 0;
	if (o->group_by & PROFIL_GROUP_SUMS) {
		sum = (key & ~(__u64)(__u32)-1) | PROFIL_PLACE_SUM;
		key &= ~GROUP_BITS;
	}
	full = keys_count(slot, key, sum, n);
	if (full & 1)
		image_coarse(slot, key, n);
	if (full & 2 && !(key & PROFIL_PLACE_FOLDED))
		outcome_count(slot, OUTCOME_GROUP_FULL, n);
	return 0;
}

/* The same. Global, as image_number(). */
__attribute__((noinline)) int place_add(__u32 slot, __u64 key, __u32 n)
{
	return place_add_here(slot, key, n);
}

/* Counts @n samples at @offset of @image. @of: the key's group and FOLDED bits. */
static __always_inline void key_count(__u32 slot, const struct profil_observer *o, __u32 image,
				      __u32 offset, __u64 of, __u32 n)
{
	__u32 zero = 0;
	struct cpu_ranges *cpu = bpf_map_lookup_elem(&cpu_ranges, &zero);
	__u64 key;

	key = of | profil_place(0, image, offset);
	if (cpu)
		cpu->counted.key[of & PROFIL_PLACE_FOLDED ? 1 : 0] = key;
	place_add(slot, key, n);
}

/*
 * Counts @n samples at @pc in the image of @s. Returns false if it is code of an interpreter, whose
 * function is to be found first: leaf_count() does both.
 */
static __always_inline bool spot_count(__u32 slot, const struct spot *s, __u64 pc, __u64 of,
				       __u32 n)
{
	const struct profil_observer *o = bpf_map_lookup_elem(&observers, &slot);
	__u32 offset = (__u32)(pc - s->base);

	if (!o)
		return true;
	if (s->interpreter && !(o->flags & PROFIL_OBSERVER_NATIVE) && leaf_defer(s, offset, of, n))
		return false;
	if (s->kind == PROFIL_IMAGE_KERNEL && o->flags & PROFIL_OBSERVER_HIDES_KERNEL)
		offset = 0;
	key_count(slot, o, s->image, offset, of, n);
	return true;
}

/*
 * Counts the samples that place_count_of() has left to it. Its caller calls it, because all
 * functions of a call chain share 512 bytes of stack. Global, as image_number().
 */
__attribute__((noinline)) int leaf_count(__u32 slot)
{
	const struct profil_observer *o = bpf_map_lookup_elem(&observers, &slot);
	struct interpreting *in = interpreting_here();
	__u32 image, offset;
	__u64 of;

	if (!in || !o)
		return 0;
	leaf_find(slot);
	of = in->leaf.of;
	image = in->leaf.image;
	offset = in->leaf.offset;
	if (in->place) {
		image = profil_place_image(in->place);
		offset = profil_place_offset(in->place);
	}
	key_count(slot, o, image, offset, of, in->leaf.n);
	*(volatile __u32 *)&in->busy = 0;
	return 0;
}

/*
 * Counts @n samples at @pc, an address of the kernel if @of has KERNEL_PART, else of the process.
 * The other bits of @of are the key's: group and FOLDED.
 */
#define KERNEL_PART 1

static __always_inline bool part_count(__u32 slot, const struct task_struct *task, __u64 pc,
				       __u64 of, __u32 n)
{
	const struct profil_observer *o = bpf_map_lookup_elem(&observers, &slot);
	bool kernel = of & KERNEL_PART, counted = true;
	struct spot *s = o ? spot_take(o->epoch) : NULL;

	if (!s) {
		outcome_count(slot, OUTCOME_LOST, of & PROFIL_PLACE_FOLDED ? 0 : n);
		return true;
	}
	if (!kernel)
		task_memory(&s->memory, task);
	if (kernel || s->memory.mm)
		spot_of(slot, s, kernel ? KERNEL_OWNER : owner_of(task), pc);
	if (s->image)
		counted = spot_count(slot, s, pc, of & ~(__u64)KERNEL_PART, n);
	else if (!(of & PROFIL_PLACE_FOLDED))
		outcome_count(slot, s->kind ? OUTCOME_IMAGE_FULL : OUTCOME_UNMATCHED, n);
	spot_give();
	return counted;
}

/* The group of the running process, where groups do not distinguish its threads. */
static __always_inline __u32 group_of_process(__u32 slot, const struct task_struct *task,
					      __u32 epoch)
{
	__u64 owner = owner_of(task), leader = (__u64)task->group_leader;
	__u64 look = look_here();
	struct process_group *g;
	struct cpu_ranges *cpu;
	__u32 zero = 0, group;

	cpu = bpf_map_lookup_elem(&cpu_ranges, &zero);
	if (!cpu || cpu->busy)
		return (__u32)group_number(slot);
	*(volatile __u32 *)&cpu->busy = 1;
	g = &cpu->group[mix(owner ^ (__u64)epoch << 40) % CPU_GROUPS];
	if (g->owner == owner && g->leader == leader && g->epoch == epoch && g->look == look) {
		group = g->group;
	} else {
		group = (__u32)group_number(slot);
		g->owner = group ? owner : 0;
		g->leader = leader;
		g->look = look;
		g->epoch = epoch;
		g->group = group;
	}
	*(volatile __u32 *)&cpu->busy = 0;
	return group;
}

/* The running task's group, as in a key. */
static __always_inline __u64 group_of(__u32 slot, const struct task_struct *task, __u32 n)
{
	const struct profil_observer *o = bpf_map_lookup_elem(&observers, &slot);
	__u32 group;

	if (!o || !o->group_by)
		return 0;
	if (o->group_by & PROFIL_GROUP_THREAD)
		group = (__u32)group_number(slot);
	else
		group = group_of_process(slot, task, o->epoch);
	if (!group)
		outcome_count(slot, OUTCOME_GROUP_FULL, n);
	return profil_place(group, 0, 0);
}

enum place_result {
	COUNTED_NOT, /* the slot has no table */
	COUNTED,
	COUNTED_LATER, /* the caller is to call leaf_count() */
};

/*
 * Counts @n samples of @task, which is running, in the table of @slot: at @kernel_pc (0: user mode)
 * and at @user_pc (0: the thread has none). Returns enum place_result.
 *
 * Inlined where each sample passes: a call takes 20 ns where the kernel protects returns, and
 * bpf_get_current_task_btf() is one.
 */
static __always_inline int place_count_of(__u32 slot, const struct task_struct *task, __u64 user_pc,
					  __u64 kernel_pc, __u32 n)
{
	__u32 zero = 0;
	struct cpu_ranges *cpu = bpf_map_lookup_elem(&cpu_ranges, &zero);
	int result = COUNTED;
	__u64 group;

	if (!cpu || !bpf_map_lookup_elem(&observed, &slot))
		return COUNTED_NOT;
	cpu->counted = (struct counted){ .slot = slot };
	group = group_of(slot, task, n);
	cpu->counted.group = profil_place_group(group);
	if (!user_pc && !kernel_pc)
		outcome_count(slot, OUTCOME_UNMATCHED, n);
		/* Not unrolled: the inlined body exists once. */
#pragma clang loop unroll(disable)
	for (int part = 0; part < 2; part++) {
		__u64 pc = part ? user_pc : kernel_pc;
		__u64 of = part && kernel_pc ? PROFIL_PLACE_FOLDED : 0;

		if (pc && !part_count(slot, task, pc, group | of | (part ? 0 : KERNEL_PART), n))
			result = COUNTED_LATER;
	}
	return result;
}

/* The same for the running task. Global, as image_number(). */
__attribute__((noinline)) int place_count(__u32 slot, __u64 user_pc, __u64 kernel_pc, __u32 n)
{
	const struct task_struct *task = (void *)bpf_get_current_task_btf();

	return place_count_of(slot, task, user_pc, kernel_pc, n);
}

#endif
