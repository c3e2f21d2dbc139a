/* pprof_writer.h - what the writers of functions and of stacks share */
#ifndef PROFIL_FORMATS_PPROF_WRITER_H
#define PROFIL_FORMATS_PPROF_WRITER_H

#include "analysis/sample_location.h"
#include "profile/owners.h"
#include "profile_content.h"
#include "symbols/lines_store.h"
#include "synthetic_addresses.h"

/* A function that was inlined somewhere. */
struct inlined {
	const char *name;
	const char *file;
};

struct pprof {
	const struct profile *profile;
	struct lines_store *lines; /* NULL: source lines are not read */
	bool for_collectors;	   /* see pprof_write_for_collectors() */
	__u64 began_ns;		   /* since the epoch; 0: the profile has the second */
	struct spots spots;
	struct extents extents;
	__u32 *mapping;		 /* of each extent: its id; 0: none */
	__u32 nowhere;		 /* the mapping of what is in no file; 0: none */
	__u32 *function;	 /* of each function, then of [unmatched] and [lost]: its id */
	struct inlined *inlined; /* sorted; their ids follow those of the other functions */
	size_t ninlined;
	struct owner *owner; /* of each object, where places have no groups; NULL: they have */
	__u32 main;	     /* the first mapping, by whose name pprof calls it all */
	struct profile_content proto;
};

/* The id of the mapping of @offset in @object. */
__u64 pprof_mapping(const struct pprof *w, __u32 object, __u64 offset);

/* Labels that say what group @group is; 0: nothing. */
void pprof_group_labels(struct pprof *w, __u32 group);

/* Labels of samples in @object: its mode, and what ran it. */
void pprof_labels(struct pprof *w, __u32 object, __u32 group);

/* What a sample stands for: nanoseconds, or events; 0: unknown, as with a frequency. */
__u64 pprof_period(const struct profile *p);

/* Writes the functions, locations and samples of a profile with stacks. Returns 0 or -ENOMEM. */
int pprof_stacks(struct pprof *w);

#endif
