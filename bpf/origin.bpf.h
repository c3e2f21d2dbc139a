/* origin.bpf.h - what the code of a mapping comes from: a file, or the process itself */
#ifndef PROFIL_BPF_ORIGIN_BPF_H
#define PROFIL_BPF_ORIGIN_BPF_H

/*
 * Code of a file is named by the file, so its offsets matter. Code that a process makes is named by
 * the process, in a perf map, so its addresses matter. That a mapping has a vm_file does not decide
 * it:
 *
 *	- The kernel has memory that is presented as a file: shared anonymous memory, memfd,
 *	  System V shared memory, huge pages, /dev/zero. JIT compilers use these, and temporary
 *	  files, to have their code mapped twice, writable and executable. Such a mapping is
 *	  shared, or of huge pages, or of a device; the mappings of a program that was loaded are
 *	  private, also if its file was deleted, or is a memfd.
 *	- A program can replace its text by a copy in huge pages, at the same addresses. The
 *	  mappings on both sides of the copy are of one file, at one difference of address and
 *	  offset: the code between them is that file's.
 */

#include "kernel.bpf.h"
#include "vma.bpf.h"

struct super_block {
	unsigned int s_dev;
	unsigned long s_magic;
} __attribute__((preserve_access_index));

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	unsigned int i_generation;
	unsigned int i_nlink;
	struct super_block *i_sb;
} __attribute__((preserve_access_index));

struct file {
	struct inode *f_inode;
	struct path f_path;
} __attribute__((preserve_access_index));

#define FILE_TYPE 0170000
#define FILE_CHARACTER_DEVICE 0020000
#define HUGE_PAGES_MAGIC 0x958458f6

/* Mappings next to a copied text that are looked at, at most: each can be copied, too. */
#define ORIGIN_STEPS 16

static __always_inline __u64 inode_of(const struct file *file)
{
	return file ? (__u64)BPF_CORE_READ(file, f_inode) : 0;
}

/*
 * Says whether the code of @m is its process's. A shared mapping of a file that was not opened for
 * writing is VM_MAYSHARE only: then it is an ordinary one if the file has a name.
 */
static __always_inline bool is_own_code(const struct mapping *m)
{
	const struct inode *inode = (const void *)inode_of(m->file);

	if (!inode || m->flags & VM_SHARED)
		return true;
	if (m->flags & VM_MAYSHARE && !BPF_CORE_READ(inode, i_nlink))
		return true;
	return (BPF_CORE_READ(inode, i_mode) & FILE_TYPE) == FILE_CHARACTER_DEVICE ||
	       BPF_CORE_READ(inode, i_sb, s_magic) == HUGE_PAGES_MAGIC;
}

/* The search for the file around a copied text. */
struct origin {
	struct mapping m;     /* the one at the edge */
	struct mapping below; /* the file's; file NULL: not found yet */
	__u64 mm;
	__u64 edge; /* of the mappings that were looked at */
};

/*
 * Takes the mapping at the edge. Returns 0 if there is none. Global, as origin_judge(), because the
 * loop over both has little room on the stack.
 */
__attribute__((noinline)) int origin_walk(struct origin *o)
{
	bool is_down;

	if (!o)
		return 0;
	is_down = !o->below.file;
	if (!mapping_walk(&o->m, (void *)o->mm, is_down ? o->edge - 1 : o->edge))
		return 0;
	return (is_down ? o->m.end : o->m.start) == o->edge;
}

enum origin_verdict { ORIGIN_UNKNOWN, ORIGIN_GOES_ON, ORIGIN_FOUND };

/* Looks at o->m; @above is the end of the copied text. */
__attribute__((noinline)) int origin_judge(struct origin *o, __u64 above)
{
	const struct mapping *below;

	if (!o)
		return ORIGIN_UNKNOWN;
	below = &o->below;
	if (is_own_code(&o->m)) {
		o->edge = below->file ? o->m.end : o->m.start;
		return ORIGIN_GOES_ON;
	}
	if (!below->file) {
		o->below = o->m;
		o->edge = above;
		return ORIGIN_GOES_ON;
	}
	return inode_of(o->m.file) == inode_of(below->file) &&
			       o->m.start - o->m.offset == below->start - below->offset
		       ? ORIGIN_FOUND
		       : ORIGIN_UNKNOWN;
}

#endif
