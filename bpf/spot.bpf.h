/* spot.bpf.h - finds the image at a pc: in the CPU's cache of ranges, or by the mappings */
#ifndef PROFIL_BPF_SPOT_BPF_H
#define PROFIL_BPF_SPOT_BPF_H

/*
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
 * Samples nest on a CPU: a timer interrupts the sample of a page fault, an NMI interrupts the
 * timer's. A sample that finds the CPU's cache busy searches without it.
 */

#include "image.bpf.h"
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

/* Sets the interpreter of the image at @s, or marks it as not looked for yet. */
static __always_inline void spot_interpreter(__u32 slot, struct spot *s)
{
	__u32 number = image_interpreter(slot, s->image);

	if (number == INTERPRETER_NOT_YET)
		s->todo |= IMAGE_INTERPRETER;
	else
		s->interpreter = number;
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
		spot_interpreter(slot, s);
	s->anonymous = s->kind == PROFIL_IMAGE_ANON;
}

/*
 * bpf_find_vma() and reading a build id each need mmap_lock, which an interrupt can take only once.
 * So the sample that finds the image leaves the build id to the next sample in the range.
 */
static __always_inline void range_build_id(__u32 slot, struct spot *s, struct range *r, __u64 pc)
{
	s->offset = (__u32)(pc - s->base);
	r->todo &= ~IMAGE_BUILD_ID;
	image_build_id(slot, s);
}

/*
 * What is left to do of the range: the build id, or the interpreter, as long as the client has not
 * looked for one; a process can be over before the range expires. Not inlined: it is no part of the
 * longest chain of calls, which share 512 bytes of stack.
 */
static __attribute__((noinline)) void range_finish(__u32 slot, struct spot *s, struct range *r,
						   __u64 pc)
{
	if (r->todo & IMAGE_BUILD_ID)
		range_build_id(slot, s, r, pc);
	if (!(r->todo & IMAGE_INTERPRETER))
		return;
	spot_interpreter(slot, s);
	r->interpreter = s->interpreter;
	r->todo = s->todo & IMAGE_INTERPRETER;
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

/* Keeps what was found for the next samples nearby. Not inlined, as range_finish(). */
static __attribute__((noinline)) void range_fill(struct range *r, const struct spot *s, __u64 owner,
						 __u32 epoch)
{
	r->owner = s->image && s->bytes ? owner : 0;
	r->mm = s->memory.mm;
	r->start = s->start;
	r->bytes = s->bytes;
	r->exec_vm = s->memory.exec_vm;
	r->base = s->base;
	r->vma = s->m.vma;
	r->inode = s->inode;
	r->image = s->image;
	r->interpreter = s->interpreter;
	r->anonymous = s->anonymous;
	r->moment = moment_now();
	r->epoch = epoch;
	r->todo = s->todo & IMAGE_INTERPRETER;
	if (image_lookup == PROFIL_LOOKUP_FIND_VMA && s->kind == PROFIL_IMAGE_FILE)
		r->todo |= s->todo & IMAGE_BUILD_ID;
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
			range_finish(slot, s, r, pc);
	} else {
		spot_search(slot, s, kernel, pc);
		r = second - 1;
		*second = *r;
		range_fill(r, s, owner, epoch);
	}
	*(volatile __u32 *)&cpu->busy = 0;
}

#endif
