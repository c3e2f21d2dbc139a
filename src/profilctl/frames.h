/* frames.h - where functions start, as the unwind information of a stripped file still tells */
#ifndef PROFIL_FRAMES_H
#define PROFIL_FRAMES_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct frames {
	__u64 *start; /* virtual addresses, sorted */
	size_t n;
};

/*
 * Reads the search table of .eh_frame_hdr. A file without one, or with one in another form than
 * linkers write, has no frames: that is no error. Returns 0 or -ENOMEM.
 */
int frames_read(struct frames *f, Elf *elf);

/* The function that holds @vaddr, up to the start of the next one. */
bool frames_find(const struct frames *f, __u64 vaddr, __u64 *start, __u64 *end);

void frames_fini(struct frames *f);

#endif
