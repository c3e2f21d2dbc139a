/* mappings.h - pprof's mappings: each executable segment of a file where its linker has put it */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_MAPPINGS_H
#define PROFIL_PROFIL_HTTP_ANSWERS_MAPPINGS_H

#include "locations.h"

/*
 * A reader looks up an address in the file's symbols by its distance from the start of the mapping
 * and by the segment at the mapping's offset. If profil-http could not read a file, addresses are
 * its offsets; a reader with a file of that build id finds the segment all the same.
 */
struct mapping {
	const char *file;
	const char *build_id;
	__u64 start;
	__u64 limit;
	__u64 offset;
	__u64 bias; /* address = bias + offset in the object */
	bool has_functions;
	const char *frame_type; /* of OpenTelemetry; NULL: unknown */
};

/* The last mapping is for samples without an image. Ids begin with 1. */
struct mappings {
	const struct names *names;
	struct mapping *mapping;
	size_t n;
	size_t *first; /* of each object, in @id */
	__u32 *id; /* by object, and within that by segment, the last for offsets in no segment; 0:
		      none */
};

/* @whole: each object has one mapping, for all of its places. Returns 0 or -ENOMEM. */
int mappings_init(struct mappings *m, const struct names *n, const struct locations *at,
		  bool whole);

/* The id of the mapping of @offset in an object that has places, and the address in it. */
__u64 mappings_id(const struct mappings *m, __u32 object, __u64 offset);
__u64 mappings_address(const struct mappings *m, __u64 id, __u64 offset);

void mappings_fini(struct mappings *m);

#endif
