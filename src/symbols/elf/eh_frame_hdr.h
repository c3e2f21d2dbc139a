/* eh_frame_hdr.h - the bounds of functions in a stripped file, from .eh_frame_hdr or .eh_frame */
#ifndef PROFIL_SYMBOLS_ELF_EH_FRAME_HDR_H
#define PROFIL_SYMBOLS_ELF_EH_FRAME_HDR_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

/* A row of the search table: the FDE for the code from @start. Both are virtual addresses. */
struct frame_row {
	__u64 start;
	__u64 fde;
};

struct frames {
	Elf *elf;
	struct frame_row *row; /* sorted by start */
	size_t n;
	Elf_Data *eh_frame;
	__u64 eh_frame_vaddr;
};

/*
 * Reads the search table of .eh_frame_hdr; without one, or with one in an encoding that linkers do
 * not use, all of .eh_frame. @elf must outlive @f. If neither can be read, @f is empty, which is
 * not an error. Returns 0 or -ENOMEM.
 */
int frames_read(struct frames *f, Elf *elf);

/*
 * Says whether an FDE covers @vaddr, with the FDE's bounds in *@start and *@end. If not, these are
 * the end of the preceding FDE (0: none) and the start of the next one (~0: none), since a program
 * can have unwind information for a few functions only.
 */
bool frames_find(const struct frames *f, __u64 vaddr, __u64 *start, __u64 *end);

/* Says whether the code that starts at @start, as frames_find() gives it, returns from a signal. */
bool frames_returns_from_signal(const struct frames *f, __u64 start);

void frames_fini(struct frames *f);

#endif
