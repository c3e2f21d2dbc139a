/* image.bpf.h - images: which one an address belongs to; its identity, path and build id */
#ifndef PROFIL_BPF_IMAGE_BPF_H
#define PROFIL_BPF_IMAGE_BPF_H

#include "kernel.bpf.h"
#include "path.bpf.h"
#include "origin.bpf.h"
#include "share.bpf.h"
#include "table.bpf.h"
#include "vma.bpf.h"

/* A file of a layer of a stacked file system, such as overlayfs. Its first member is a struct file.
 */
struct backing_file {
	struct path user_path;
} __attribute__((preserve_access_index));

struct mnt_namespace {
	struct ns_common ns;
} __attribute__((preserve_access_index));

struct nsproxy {
	struct mnt_namespace *mnt_ns;
} __attribute__((preserve_access_index));

/* A key's offset has 32 bits, so an image is 4 GiB of a file or of addresses. */
#define WINDOW_BITS 32
#define IMAGE_TRIES 8 /* attempts to read a build id */

/* What a sample still has to do for its image. */
enum image_todo {
	IMAGE_FILL = 1 << 0,
	IMAGE_BUILD_ID = 1 << 1,
	/* Set by the caller: the pc is a word from a stack, valid only in executable memory. */
	IMAGE_CALLER = 1 << 2,
	/* The client has not looked yet whether the image is an interpreter's. */
	IMAGE_INTERPRETER = 1 << 3,
};

/* The address space of the running task. */
struct task_memory {
	__u64 mm; /* 0: a kernel thread has none */
	__u64 exec_vm;
};

static __always_inline void task_memory(struct task_memory *m, const struct task_struct *task)
{
	const struct mm_struct *mm = task->mm;

	m->mm = (__u64)mm;
	m->exec_vm = mm ? mm->exec_vm : 0;
}

/*
 * Global, so that the verifier meets this load of a pointer only once: at each it searches the
 * kernel's BTF three times by name, which takes a millisecond.
 */
__attribute__((noinline)) int task_memory_read(struct task_memory *m)
{
	if (m)
		task_memory(m, (void *)bpf_get_current_task_btf());
	return 0;
}

/* The image of a pc, and the range of addresses around it that have the same image and base. */
struct spot {
	__u64 base;	  /* the pc's offset in the image is pc - base */
	__u64 start;	  /* of the range */
	__u64 bytes;	  /* of the range; 0: do not cache it */
	__u64 offset;	  /* in the file */
	struct mapping m; /* of a copied text: the file's below it, but for m.vma */
	struct origin origin;
	struct task_memory memory; /* of the running task, for a user's pc */
	__u32 kind;		   /* enum profil_image_kind; 0: the pc is in no mapping */
	__u32 image;		   /* its number; 0: there is no room for it */
	__u64 inode;		   /* vm_file's, its address; 0: there is no file */
	__u64 ino;		   /* of the file, as the next two */
	__u32 dev;
	__u32 generation;
	__u32 epoch;	   /* of the observer */
	__u32 todo;	   /* enum image_todo */
	__u32 interpreter; /* number of the image's descriptor; 0: it is no interpreter */
	__u32 anonymous;   /* it is memory without a file */
};

static __always_inline __u64 start_of(const struct task_struct *task)
{
	return BPF_CORE_READ(task, group_leader, start_boottime);
}

/* The id of the image at @s: a hash of its identity; never 0. */
static __always_inline __u64 image_id(struct spot *s, const struct task_struct *task)
{
	__u64 window = s->offset >> WINDOW_BITS, a = 0, b = 0;
	struct file *file = s->m.file;
	struct inode *inode;

	switch (s->kind) {
	case PROFIL_IMAGE_FILE:
		inode = BPF_CORE_READ(file, f_inode);
		s->ino = BPF_CORE_READ(inode, i_ino);
		s->dev = BPF_CORE_READ(inode, i_sb, s_dev);
		s->generation = BPF_CORE_READ(inode, i_generation);
		a = s->ino;
		b = (__u64)s->dev << 32 | s->generation;
		break;
	case PROFIL_IMAGE_VDSO: /* the 32-bit and the 64-bit one differ in size */
		a = s->bytes;
		break;
	case PROFIL_IMAGE_ANON:
		a = (__u32)task->tgid;
		b = start_of(task);
		break;
	case PROFIL_IMAGE_FUNCTIONS:
		a = s->generation;
		break;
	}
	return mix(a ^ mix(b ^ mix(window ^ (__u64)s->kind << 56))) | 1;
}

/* Without any image lookup: an address of the process. No address is known to be executable. */
static __always_inline int spot_process(struct spot *s, __u64 pc)
{
	if (s->todo & IMAGE_CALLER)
		return 0;
	s->kind = PROFIL_IMAGE_ANON;
	s->offset = pc;
	s->base = pc - (__u32)pc;
	s->start = s->base;
	s->bytes = 1ull << WINDOW_BITS;
	return 0;
}

/* Sets the base of offsets. A mapping that spans two windows has two images. */
static __always_inline void spot_base(struct spot *s, __u64 pc)
{
	__u64 before = pc - s->start, behind = s->bytes - 1 - before;

	s->base = pc - (__u32)s->offset;
	if (((s->offset - before) ^ (s->offset + behind)) >> WINDOW_BITS)
		s->bytes = 0;
}

/* Finds the mapping of @pc, the kind of its image and the base of offsets. Global, as
 * image_number(). */
__attribute__((noinline)) int spot_find(struct spot *s, __u64 pc)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct mm_struct *mm;
	struct mapping *m;

	if (!s || !s->memory.mm)
		return 0;
	mm = (void *)s->memory.mm;
	if (image_lookup == PROFIL_LOOKUP_PROCESS)
		return spot_process(s, pc);
	m = &s->m;
	if (!(image_lookup == PROFIL_LOOKUP_WALK ? mapping_walk(m, mm, pc)
						 : mapping_find_vma(m, task, pc)) ||
	    (s->todo & IMAGE_CALLER && !(m->flags & VM_EXEC)))
		return 0;
	s->start = m->start;
	s->bytes = m->end - m->start;
	if (!is_own_code(m)) {
		s->kind = PROFIL_IMAGE_FILE;
		s->offset = pc - m->start + m->offset;
	} else if (m->start == (__u64)BPF_CORE_READ(mm, context.vdso)) {
		s->kind = PROFIL_IMAGE_VDSO;
		s->offset = pc - m->start;
	} else {
		s->kind = PROFIL_IMAGE_ANON;
		s->offset = pc;
	}
	s->inode = inode_of(m->file);
	spot_base(s, pc);
	return 0;
}

/*
 * Finds the file of a text that was copied, after spot_find(). With bpf_find_vma() an interrupt has
 * one look-up only. Global, as image_number().
 */
__attribute__((noinline)) int spot_origin(struct spot *s, __u64 pc)
{
	int verdict = ORIGIN_GOES_ON;
	__u64 end;

	if (!s || s->kind != PROFIL_IMAGE_ANON || image_lookup != PROFIL_LOOKUP_WALK)
		return 0;
	end = s->m.end;
	s->origin.below.file = NULL;
	s->origin.mm = s->memory.mm;
	s->origin.edge = s->m.start;
#pragma clang loop unroll(disable)
	for (int i = 0; i < ORIGIN_STEPS && verdict == ORIGIN_GOES_ON; i++)
		verdict = origin_walk(&s->origin) ? origin_judge(&s->origin, end) : ORIGIN_UNKNOWN;
	if (verdict != ORIGIN_FOUND)
		return 0;
	s->origin.below.vma = s->m.vma;
	s->bytes = end - s->m.start;
	s->m = s->origin.below;
	s->kind = PROFIL_IMAGE_FILE;
	s->offset = pc - s->m.start + s->m.offset;
	spot_base(s, pc);
	return 0;
}

static __always_inline void spot_kernel(struct spot *s, __u64 pc)
{
	s->kind = PROFIL_IMAGE_KERNEL;
	s->offset = pc;
	s->base = pc & ~(__u64)0xffffffff;
	s->start = s->base;
	s->bytes = 1ull << WINDOW_BITS;
}

static __always_inline struct profil_image *image_at(const struct table *t, __u32 number)
{
	__u32 at = number - 1;
	struct profil_image *page =
		table_page(t, t->observer->image_page + at / PROFIL_PAGE_IMAGES);

	return page ? &page[at % PROFIL_PAGE_IMAGES] : NULL;
}

/*
 * The build id is in the file's first page. The kernel reads it only if the page is in memory and
 * mmap_lock is free.
 */
static __always_inline void read_build_id(struct profil_image *image, const struct spot *s)
{
	struct bpf_stack_build_id id = { 0 };
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	const __u32 *word = (const void *)id.build_id;

	if (bpf_get_task_stack((void *)task, &id, sizeof(id),
			       BPF_F_USER_STACK | BPF_F_USER_BUILD_ID) <= 0)
		return;
	if (id.status != BPF_STACK_BUILD_ID_VALID || id.offset != s->offset)
		return;
	__builtin_memcpy(image->build_id, id.build_id, sizeof(image->build_id));
	/* Padded with zeros: an MD5 or UUID has 16 bytes, lld's shortest 8. */
	if (word[4])
		image->build_id_bytes = 20;
	else if (word[2] | word[3])
		image->build_id_bytes = 16;
	else
		image->build_id_bytes = 8;
}

/*
 * The last step of filling in a file's image. It becomes ready even without a build id, because
 * some files have none; later samples try again, IMAGE_TRIES times in all.
 */
__attribute__((noinline)) int image_build_id(__u32 slot, const struct spot *s)
{
	struct profil_image *image;
	struct table table;

	if (!s || !table_of(&table, slot))
		return 0;
	image = image_at(&table, s->image);
	if (!image)
		return 0;
	image->tries++;
	read_build_id(image, s);
	if (!image->ready)
		__sync_lock_test_and_set(&image->ready, 1);
	return 0;
}

/*
 * The path by which processes know @file. A mapping of a file in an overlayfs has a backing_file.
 * Since Linux 6.8 the f_path of that is the path in the layer, and user_path the one in the
 * overlay. A backing_file has a bit in f_mode, which moved in 6.14. So the path itself is tested:
 * in the memory behind any other file there is no mount with the file system of a dentry.
 */
static __always_inline const struct path *user_path(struct file *file)
{
	struct backing_file *backing = (void *)file;
	struct super_block *sb;

	if (bpf_core_field_exists(backing->user_path)) {
		sb = BPF_CORE_READ(backing, user_path.mnt, mnt_sb);
		if (sb && sb == BPF_CORE_READ(backing, user_path.dentry, d_sb))
			return &backing->user_path;
	}
	return &file->f_path;
}

/* Fills in the image that this sample has claimed. */
__attribute__((noinline)) int image_fill(__u32 slot, const struct spot *s)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct table table, *t = &table;
	struct profil_image *image;

	if (!s || !table_of(t, slot))
		return 0;
	image = image_at(t, s->image);
	if (!image)
		return 0;
	image->base = s->offset - (__u32)s->offset;
	image->ino = s->ino;
	image->dev = s->dev;
	image->generation = s->generation;
	image->kind = (__u16)s->kind;
	if (s->kind != PROFIL_IMAGE_KERNEL) {
		image->tgid = task_number(t, BPF_CORE_READ(task, group_leader));
		image->start = s->m.start;
		image->end = s->m.end;
	}
	if (s->kind == PROFIL_IMAGE_FILE) {
		struct file *file = s->m.file;
		const struct path *path = user_path(file);
		struct dentry *dentry = BPF_CORE_READ(path, dentry);

		image->mount_ns = BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum);
		image->deleted = !BPF_CORE_READ(file, f_inode, i_nlink) ||
				 !BPF_CORE_READ(dentry, d_hash.pprev);
		path_read(image, path);
	} else {
		__sync_lock_test_and_set(&image->ready, 1);
	}
	TABLE_ADD(t, used_images, 1);
	return 0;
}

/*
 * Sets the number of the image at @s: one of the eight of one page, or of a second page. Images are
 * never released, so a free one ends the search and is claimed. Global, so that the verifier checks
 * it once.
 */
__attribute__((noinline)) int image_number(__u32 slot, struct spot *s)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct profil_observer *o;
	struct table table, *t = &table;
	__u64 id, h;

	if (!s || !table_of(t, slot))
		return 0;
	o = t->observer;
	id = image_id(s, task);
	h = mix(id);
	for (int turn = 0; turn < 2; turn++) {
		__u32 page = (__u32)h & o->image_mask;
		struct profil_image *image = table_page(t, o->image_page + page);

		h >>= 32;
		for (__u32 i = 0; image && i < PROFIL_PAGE_IMAGES; i++, image++) {
			__u64 seen = *(volatile __u64 *)&image->id;

			if (!seen)
				seen = share_claim(slot, SHARE_IMAGES, &image->id, id);
			if (seen == SHARE_REFUSED)
				return 0;
			if (seen && seen != id)
				continue;
			s->image = 1 + page * PROFIL_PAGE_IMAGES + i;
			if (!seen)
				s->todo = IMAGE_FILL | IMAGE_BUILD_ID;
			else if (image->ready && !image->build_id_bytes &&
				 image->tries < IMAGE_TRIES)
				s->todo = IMAGE_BUILD_ID;
			return 0;
		}
	}
	return 0;
}

#endif
