/* vma.bpf.h - finds the mapping of an address in the running process; without a lock if possible */
#ifndef PROFIL_BPF_VMA_BPF_H
#define PROFIL_BPF_VMA_BPF_H

#include <stdbool.h>

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "core/observers.h"
#include "kernel.bpf.h"

struct maple_tree {
	void *ma_root;
} __attribute__((preserve_access_index));

typedef struct __attribute__((preserve_access_index)) {
	void *vdso;
} mm_context_t;

struct rw_semaphore {
	long count;
} __attribute__((preserve_access_index));

struct mm_struct {
	struct rw_semaphore mmap_lock;
	struct maple_tree mm_mt;
	unsigned long exec_vm; /* pages of executable mappings */
	mm_context_t context;
	struct file *exe_file;
	unsigned long flags;
} __attribute__((preserve_access_index));

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	struct mm_struct *vm_mm;
	unsigned long vm_pgoff;
	unsigned long vm_flags;
	struct file *vm_file;
} __attribute__((preserve_access_index));

/* linux/maple_tree.h. A pointer to a node has its type in bits 3 to 6. */
#define MAPLE_LEAF_64 1
#define MAPLE_ARANGE_64 3
#define MAPLE_NODE_BITS 255ull
#define MAPLE_RANGE_SLOTS 16
#define MAPLE_ARANGE_SLOTS 10
#define MAPLE_PIVOTS 4 /* that are read at a time */
#define MAPLE_PIVOTS_BYTES (MAPLE_PIVOTS * sizeof(__u64))
#define MAPLE_HEIGHT 6 /* 10^5 * 16 mappings; the kernel's limit is 65530 by default */

/*
 * Goes one level down from node @at. A pivot is the last address of its slot; the last slot has
 * none, and a pivot of 0 ends them early. The words after the pivots are slots: 0, or kernel
 * addresses, which are not below @address. Mappings are page-aligned, so page numbers are compared.
 * The loop has no branch, because the verifier would follow each slot of each level. It reads four
 * pivots at a time.
 */
static __always_inline __u64 maple_down(__u64 at, __u64 address, __u64 *pivot)
{
	__u64 node = at & ~MAPLE_NODE_BITS, next = 0, slot = 0;
	__u64 is_arange = ((at >> 3 & 15) ^ MAPLE_ARANGE_64) - 1ull, slots;

	asm volatile("" : "+r"(is_arange)); /* as below */
	slots = MAPLE_RANGE_SLOTS - (is_arange >> 63) * (MAPLE_RANGE_SLOTS - MAPLE_ARANGE_SLOTS);
#pragma clang loop unroll(disable)
	for (int part = 0; part < MAPLE_RANGE_SLOTS / MAPLE_PIVOTS; part++) {
		bpf_probe_read_kernel(pivot, MAPLE_PIVOTS_BYTES,
				      (void *)(node + 8 + part * MAPLE_PIVOTS_BYTES));
#pragma clang loop unroll(disable)
		for (int i = 0; i < MAPLE_PIVOTS; i++) {
			__u64 is_below = (pivot[i] >> 12) - (address >> 12);
			__u64 is_set = pivot[i] | -pivot[i];

			/* Hides the sign from the compiler, which would branch on it. */
			asm volatile("" : "+r"(is_below), "+r"(is_set));
			slot += (is_below & is_set) >> 63;
		}
	}
	bpf_probe_read_kernel(&next, sizeof(next), (void *)(node + slots * 8 + slot * 8));
	return next;
}

/*
 * The mapping of @mm that @address may be in, or NULL. Nodes and mappings are freed after an RCU
 * grace period at the earliest, and BPF programs are RCU readers. A mapping may be reused without
 * one, so its fields are valid only if vm_mm == @mm after they have been read.
 */
static __always_inline struct vm_area_struct *maple_find(struct mm_struct *mm, __u64 address,
							 __u64 *pivot)
{
	__u64 at = 0;

	if (!bpf_core_field_exists(mm->mm_mt))
		return NULL;
	bpf_probe_read_kernel(&at, sizeof(at), &mm->mm_mt.ma_root);
	if ((at & 3) != 2 || at <= 4096)
		return NULL;
#pragma clang loop unroll(disable)
	for (int i = 0; i < MAPLE_HEIGHT; i++) {
		__u32 type = at >> 3 & 15;

		at = maple_down(at, address, pivot);
		if (type <= MAPLE_LEAF_64)
			return at > 4096 ? (void *)at : NULL;
		if (at <= 4096)
			return NULL;
	}
	return NULL;
}

const volatile __u32 page_shift = 12;

/* enum profil_image_lookup; set by the daemon before the first sample (image_lookup.c). */
__u32 image_lookup = PROFIL_LOOKUP_WALK;

#define VM_WRITE 0x2
#define VM_EXEC 0x4
#define VM_SHARED 0x8
#define VM_MAYSHARE 0x80

/* A mapping as it was at one moment. */
struct mapping {
	__u64 start;
	__u64 end;
	__u64 offset; /* of start, in the file */
	struct file *file;
	__u64 vma;		   /* its address; 0: not known */
	__u64 flags;		   /* VM_EXEC if the kernel's BTF has no vm_flags */
	__u64 pivot[MAPLE_PIVOTS]; /* of the walk, for which the BPF stack has no room */
};

/* Fills @m, which is not on the BPF stack. */
static __always_inline bool mapping_walk(struct mapping *m, struct mm_struct *mm, __u64 address)
{
	struct vm_area_struct *vma = maple_find(mm, address, m->pivot);

	if (!vma)
		return false;
	bpf_core_read(&m->start, sizeof(m->start), &vma->vm_start);
	bpf_core_read(&m->end, sizeof(m->end), &vma->vm_end);
	bpf_core_read(&m->offset, sizeof(m->offset), &vma->vm_pgoff);
	bpf_core_read(&m->file, sizeof(m->file), &vma->vm_file);
	m->offset <<= page_shift;
	m->vma = (__u64)vma;
	m->flags = VM_EXEC;
	if (bpf_core_field_exists(vma->vm_flags))
		bpf_core_read(&m->flags, sizeof(m->flags), &vma->vm_flags);
	return BPF_CORE_READ(vma, vm_mm) == mm && address - m->start < m->end - m->start;
}

static long mapping_copy(struct task_struct *task __attribute__((unused)),
			 struct vm_area_struct *vma, struct mapping **context)
{
	struct mapping *m = *context;

	m->start = vma->vm_start;
	m->end = vma->vm_end;
	m->offset = (__u64)vma->vm_pgoff << page_shift;
	m->file = vma->vm_file;
	m->flags = bpf_core_field_exists(vma->vm_flags) ? vma->vm_flags : VM_EXEC;
	return 0;
}

/*
 * The same by bpf_find_vma(), which takes mmap_lock for reading. It fails with -EBUSY if a thread
 * holds the lock for writing. With interrupts off, an irq_work releases the lock: until it has run,
 * the next call on this CPU fails too.
 */
static __always_inline bool mapping_find_vma(struct mapping *m, struct task_struct *task,
					     __u64 address)
{
	return !bpf_find_vma(task, address, mapping_copy, &m, 0);
}

#endif
