/* segments.h - the executable segments of an ELF file */
#ifndef PROFIL_PROFIL_HTTP_MACHINE_SEGMENTS_H
#define PROFIL_PROFIL_HTTP_MACHINE_SEGMENTS_H

#include <stddef.h>

#include "profile/profile.h"

/* An executable segment: the file's bytes from @offset are linked at @vaddr. */
struct segment {
	__u64 vaddr;
	__u64 offset;
	__u64 bytes;
};

#define SEGMENTS_MAX 4 /* most files have one */

struct segments {
	struct segment segment[SEGMENTS_MAX];
	size_t n;
};

/* Reads the segments of the file that @o has open; none if it has none, or not an ELF file. */
void segments_read(struct segments *s, const struct object *o);

/* The segment that contains @offset; NULL: none. */
const struct segment *segments_find(const struct segments *s, __u64 offset);

#endif
