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
 * Image of a user pc: vma.bpf.h walks the VMA tree of the task without its lock. Where the daemon's
 * test at start fails (profild/bpf/image_lookup.c), bpf_find_vma() replaces the walk, or samples
 * have no image. origin.bpf.h decides whether the code is a file's. The walk takes some hundred
 * nanoseconds, so each CPU caches 64 ranges of (attachment, address space, addresses) with their
 * images, in pairs: of two that have the same hash, the walk of one does not push out the other. A
 * cached range is valid
 *
 *	- in the same address space: same mm, tgid and exec number,
 *	- while its number of executable pages, mm->exec_vm, is unchanged,
 *	- while its mapping has the same addresses and file, and
 *	- for one second.
 *
 * So no tracepoint on mmap, munmap or exec is needed. Linux 6.1 and bpf_find_vma() do not check the
 * mapping: there, a range is stale for at most that second when a mapping of the same size has
 * replaced the one at its address.
 *
 * Group of a task: all that a group's element shows of a process or thread is part of the group's
 *key, as it is at the sample: names, cgroup and user may change. Each CPU caches the groups of 32
 * processes; a cached group is valid while the process has the same look (look_here()). When groups
 * distinguish threads, each sample looks its group up.
 *
 * Samples nest on a CPU: a timer interrupts the sample of a page fault, an NMI interrupts the
 * timer's. A sample that finds the CPU's cache busy searches without it.
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
#include "image.bpf.h"
#include "interpreter.bpf.h"
#include "table.bpf.h"
#include "unwind_rows.bpf.h"

#define CPU_RANGES 64
#define CPU_GROUPS 32
#define MEMORY_NS 1000000000 /* cached ranges and groups expire after this time */

/* The time in jiffies: bpf_jiffies64() is cheaper than bpf_ktime_get_ns(). */
static __always_inline __u32 moment_now(void)
{
	return (__u32)bpf_jiffies64();
}

static __always_inline bool is_recent(__u32 moment)
{
	return (__u64)(moment_now() - moment) * tick_ns <= MEMORY_NS;
}

struct range {
	__u64 owner; /* tgid and exec number; 0: nothing */
	__u64 mm;
	__u64 start;
	__u64 bytes;
	__u64 exec_vm;
	__u64 base;
	__u64 vma;   /* address of the mapping; 0: not known */
	__u64 inode; /* of its file, as in struct spot */
	__u32 image;
	__u32 moment;
	__u32 epoch;
	__u32 todo;	   /* enum image_todo: left to the next sample */
	__u32 interpreter; /* as in struct spot, and the next */
	__u32 anonymous;
};

/* The cached group of a process. */
struct process_group {
	__u64 owner; /* as in struct range */
	__u64 leader;
	__u64 look; /* look_here() */
	__u32 epoch;
	__u32 group;
};

/* Samples that nest on a CPU, at most: in a task, in the timer's interrupt, in an NMI. */
#define CPU_SPOTS 4

/* The places at which this CPU's latest sample was counted. */
struct counted {
	__u64 key[2]; /* [1]: FOLDED; 0: none */
	__u32 slot;
	__u32 group; /* 0: none */
};

struct cpu_ranges {
	struct range range[CPU_RANGES];
	struct process_group group[CPU_GROUPS];
	/* Not on the stack: all functions of a call chain share 512 bytes of it. */
	struct spot spot[CPU_SPOTS];
	struct counted counted;
	__u32 busy;  /* a sample uses the ranges or groups */
	__u32 spots; /* in use */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_ranges);
} cpu_ranges SEC(".maps");

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

/*
 * Says whether the mapping of @r is still as it was when the range was cached. Its memory may have
 * been freed and reused, but not for a mapping of another file at the same addresses. Global, as
 * task_memory_read().
 */
__attribute__((noinline)) int range_is_mapped(struct range *r)
{
	const struct vm_area_struct *vma;
	const struct file *file;

	if (!r || !bpf_rdonly_cast)
		return 0;
	vma = bpf_rdonly_cast((void *)r->vma, bpf_core_type_id_kernel(struct vm_area_struct));
	file = vma->vm_file;
	return vma->vm_start == r->start && vma->vm_end - vma->vm_start == r->bytes &&
	       r->inode == (file ? (__u64)file->f_inode : 0);
}

static __always_inline bool range_holds(struct range *r, __u64 owner, const struct task_memory *m,
					__u64 pc, __u32 epoch)
{
	return r->owner == owner && r->mm == m->mm && r->epoch == epoch &&
	       pc - r->start < r->bytes && r->exec_vm == m->exec_vm && is_recent(r->moment) &&
	       (!r->vma || !bpf_rdonly_cast || range_is_mapped(r));
}

/*
 * The interpreter of the running process's code without a file, by the program that it executes.
 * Global, as image_number().
 */
__attribute__((noinline)) int anonymous_adopt(__u32 slot, __u32 number)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct inode *inode = BPF_CORE_READ(task, mm, exe_file, f_inode);

	if (inode)
		unwind_adopt_anonymous(slot, number, BPF_CORE_READ(inode, i_ino),
				       BPF_CORE_READ(inode, i_sb, s_dev));
	return 0;
}

/* Finds the image at @pc without the CPU's cache. */
static __always_inline void spot_search(__u32 slot, struct spot *s, bool kernel, __u64 pc)
{
	/* In sequence, not nested: the functions of a call chain share 512 bytes of stack. */
	if (kernel) {
		spot_kernel(s, pc);
	} else {
		spot_find(s, pc);
		spot_origin(s, pc);
	}
	if (!s->kind)
		return;
	image_number(slot, s);
	if (s->todo & IMAGE_FILL) {
		if (s->kind == PROFIL_IMAGE_FILE && !(s->offset >> WINDOW_BITS))
			unwind_adopt(slot, s->image, s->ino, s->dev);
		else if (s->kind == PROFIL_IMAGE_VDSO)
			unwind_adopt(slot, s->image, PROFIL_UNWIND_VDSO, 0);
		else if (s->kind == PROFIL_IMAGE_ANON)
			anonymous_adopt(slot, s->image);
		image_fill(slot, s);
	}
	if (s->todo & IMAGE_BUILD_ID && s->kind == PROFIL_IMAGE_FILE)
		image_build_id(slot, s);
	if (s->image && (s->kind == PROFIL_IMAGE_FILE || s->kind == PROFIL_IMAGE_ANON))
		s->interpreter = image_interpreter(slot, s->image);
	s->anonymous = s->kind == PROFIL_IMAGE_ANON;
}

/*
 * bpf_find_vma() and reading a build id each need mmap_lock, which an interrupt can take only once.
 * So the sample that finds the image leaves the build id to the next sample in the range.
 */
static __always_inline void range_build_id(__u32 slot, struct spot *s, struct range *r, __u64 pc)
{
	s->offset = (__u32)(pc - s->base);
	r->todo = 0;
	image_build_id(slot, s);
}

#define KERNEL_OWNER 1

/* A process and its image; neither 0 nor KERNEL_OWNER. */
static __always_inline __u64 owner_of(const struct task_struct *task)
{
	return (__u64)(__u32)task->tgid << 32 | (__u32)task->self_exec_id | 1u << 31;
}

/* Takes a zeroed spot of this CPU; NULL if all are in use. Spots are given back in LIFO order. */
static __always_inline struct spot *spot_take(__u32 epoch)
{
	__u32 zero = 0, depth;
	struct cpu_ranges *cpu = bpf_map_lookup_elem(&cpu_ranges, &zero);
	struct spot *s;

	if (!cpu)
		return NULL;
	depth = cpu->spots;
	if (depth >= CPU_SPOTS)
		return NULL;
	*(volatile __u32 *)&cpu->spots = depth + 1;
	s = &cpu->spot[depth];
	__builtin_memset(s, 0, sizeof(*s));
	s->epoch = epoch;
	return s;
}

static __always_inline void spot_give(void)
{
	__u32 zero = 0;
	struct cpu_ranges *cpu = bpf_map_lookup_elem(&cpu_ranges, &zero);

	if (cpu)
		*(volatile __u32 *)&cpu->spots = cpu->spots - 1;
}

/* Finds the image at @pc of the running process, whose memory is s->memory, or of the kernel. */
static __always_inline void spot_of(__u32 slot, struct spot *s, __u64 owner, __u64 pc)
{
	const struct task_memory *m = &s->memory;
	bool kernel = owner == KERNEL_OWNER;
	__u32 zero = 0, epoch = s->epoch;
	struct cpu_ranges *cpu = bpf_map_lookup_elem(&cpu_ranges, &zero);
	struct range *r, *second;

	if (!cpu || cpu->busy) {
		spot_search(slot, s, kernel, pc);
		return;
	}
	*(volatile __u32 *)&cpu->busy = 1;
	r = &cpu->range[mix(owner ^ pc >> (kernel ? WINDOW_BITS : 21) ^ (__u64)epoch << 40) %
			(CPU_RANGES / 2) * 2];
	second = r + 1;
	if (!range_holds(r, owner, m, pc, epoch))
		r = range_holds(second, owner, m, pc, epoch) ? second : NULL;
	if (r) {
		s->start = r->start;
		s->bytes = r->bytes;
		s->base = r->base;
		s->image = r->image;
		s->interpreter = r->interpreter;
		s->anonymous = r->anonymous;
		s->kind = kernel ? PROFIL_IMAGE_KERNEL : PROFIL_IMAGE_FILE;
		if (r->todo)
			range_build_id(slot, s, r, pc);
	} else {
		spot_search(slot, s, kernel, pc);
		r = second - 1;
		*second = *r;
		r->owner = s->image && s->bytes ? owner : 0;
		r->mm = m->mm;
		r->start = s->start;
		r->bytes = s->bytes;
		r->exec_vm = m->exec_vm;
		r->base = s->base;
		r->vma = s->m.vma;
		r->inode = s->inode;
		r->image = s->image;
		r->interpreter = s->interpreter;
		r->anonymous = s->anonymous;
		r->moment = moment_now();
		r->epoch = epoch;
		r->todo = image_lookup == PROFIL_LOOKUP_FIND_VMA && s->kind == PROFIL_IMAGE_FILE
				  ? s->todo & IMAGE_BUILD_ID
				  : 0;
	}
	*(volatile __u32 *)&cpu->busy = 0;
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

/* Counts @n samples at @key, which has the group. Global, as image_number(). */
__attribute__((noinline)) int place_add(__u32 slot, __u64 key, __u32 n)
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
