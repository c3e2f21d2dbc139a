/* process_area.h - libprofil's memory that the daemon reads, and memory that a fork zeroes */
#ifndef PROFIL_LIBPROFIL_PROCESS_AREA_H
#define PROFIL_LIBPROFIL_PROCESS_AREA_H

#include "core/proto.h"

/*
 * A process keeps two cookie areas, so that a START can name one while the profile before it stays
 * valid in the other, and a few words that the kernel zeroes in a fork child.
 *
 * The daemon sets an area's busy mark in the memory of the process that it writes to, and clears it
 * there. A fork in between would leave the child a mark that nothing clears. So the marks are on
 * pages that a fork zeroes (MADV_WIPEONFORK), while the cookies, by which the daemon recognises the
 * child's memory, are on pages that a fork copies. A cookie and its mark are adjacent, so each area
 * straddles the boundary of two pages:
 *
 *	page 0 (copied)         page 1 (zeroed)           page 2 (copied)         page 3 (zeroed)
 *	           [cookie of 0][busy of 0, fork_local]              [cookie of 1][busy of 1]
 *
 * Processes that share their memory (vfork, CLONE_VM) share all of this: one lock, one profile. It
 * does not depend on process ids.
 */
struct profil_cookie_area *process_area(unsigned int slot);

/* Zeroed in a fork child. Processes that share their memory share these words. */
struct fork_local {
	__u32 lock;    /* entry.c: the lock of the library */
	__u32 counted; /* gmon.c: this process has a graph of its own, not its parent's */
};
struct fork_local *fork_local(void);

#endif
