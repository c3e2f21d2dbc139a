/* segments.h - the executable segments of an ELF file, and addresses by file offset */
#ifndef PROFIL_PROFILE_SEGMENTS_H
#define PROFIL_PROFILE_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

/* The file's @bytes from @offset are linked at the virtual address @vaddr, executable. */
struct segment {
	__u64 offset;
	__u64 bytes;
	__u64 vaddr;
};

/*
 * Each segment has a difference of its own between address and offset, so every conversion has to
 * find the segment first. All zero: empty.
 */
struct segments {
	struct segment *segment;
	size_t n;
};

/* Returns 0 or -ENOMEM. */
int segments_add(struct segments *s, const struct segment *add);

/* Adds all of @from. Returns 0 or -ENOMEM. */
int segments_copy(struct segments *s, const struct segments *from);

/* The segment of a file offset or of a virtual address; NULL: none. */
const struct segment *segments_of_offset(const struct segments *s, __u64 offset);
const struct segment *segments_of_address(const struct segments *s, __u64 vaddr);

/* Converts one to the other. False outside of all segments. */
bool segments_address(const struct segments *s, __u64 offset, __u64 *vaddr);
bool segments_offset(const struct segments *s, __u64 vaddr, __u64 *offset);

void segments_fini(struct segments *s);

#endif
