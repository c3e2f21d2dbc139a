/* perf_mappings.h - what perf finds at an address: the mappings of a profile's objects */
#ifndef PROFIL_FORMATS_PERF_MAPPINGS_H
#define PROFIL_FORMATS_PERF_MAPPINGS_H

#include "synthetic_addresses.h"

/*
 * perf finds names in files, by build id. Where a function has no file (compiled at run time, of an
 * interpreted language) and where a frame is no function ("[lost]") the mapping has its name: perf
 * shows that of a mapping where it finds no symbol.
 */
struct perf_mapping {
	__u64 start;
	__u64 end;
	__u64 offset;		     /* in the file, of @start */
	const struct object *object; /* NULL: no file */
	char *name;		     /* NULL: the object's path */
	__u32 used;		     /* free for the writer; 0 at first */
};

/* All zero: empty. */
struct perf_mappings {
	const struct profile *profile;
	struct extents extents;
	struct perf_mapping *mapping; /* sorted; they do not overlap */
	size_t n;
};

/* Returns 0 or -ENOMEM; perf_mappings_fini() in any case. */
int perf_mappings_init(struct perf_mappings *m, const struct profile *p);
void perf_mappings_fini(struct perf_mappings *m);

/* The address of a place, and that of a frame that is no function; see each_stack.h. */
__u64 perf_address(const struct perf_mappings *m, __u32 object, __u64 offset);
__u64 perf_frame_address(const struct perf_mappings *m, __u32 frame);

/* The mapping of an address; NULL: none. */
struct perf_mapping *perf_mapping_of(const struct perf_mappings *m, __u64 address);

#endif
