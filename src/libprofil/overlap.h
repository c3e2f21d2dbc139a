/* overlap.h - cuts overlapping regions into pieces that do not overlap */
#ifndef PROFIL_LIBPROFIL_OVERLAP_H
#define PROFIL_LIBPROFIL_OVERLAP_H

#include "core/shared_maps.h"
#include "core/proto.h"
#include "dialect.h"

#define REGIONS_MAX 4096
#define REGIONS_PIECES (2 * REGIONS_MAX + 1)
_Static_assert(REGIONS_PIECES <= PROFIL_TARGET_REGIONS, "what the daemon takes");

/* How a pc is counted that a region covers but has no counter for. */
enum region_kind {
	REGION_OPEN,  /* by the next region in rank: glibc, Darwin, AIX */
	REGION_ALONE, /* by the overflow bin: IRIX */
	REGION_SHUT,  /* not at all: IRIX's region that is off */
};

/*
 * A region covers the pcs from @lo on, to the end of @x's span if it is OPEN, else without end.
 * Among regions that cover a pc, the one with the smallest @rank decides; among equal ranks, the
 * one added first.
 */
struct region {
	__u64 lo;
	struct profil_xform x;
	__u64 addr;
	__u64 rank;
	enum region_kind kind;
};

/*
 * A call's regions, the working space, and the START message for the pieces. All of it is one
 * mapping, of which only the pages in use take memory.
 */
struct regions {
	unsigned int n;
	unsigned int overflow; /* index of the overflow bin for ALONE regions; REGIONS_MAX: none */
	struct region region[REGIONS_MAX];
	__u16 waiting[REGIONS_MAX];
	__u16 open[REGIONS_MAX];
	__u32 owner[REGIONS_MAX];
	union {
		struct profil_msg_start start;
		unsigned char space[sizeof(struct profil_msg_start) +
				    REGIONS_PIECES * sizeof(struct profil_msg_region)];
	} m;
};

/* Empty regions, or NULL. */
struct regions *regions_new(void);
void regions_freep(struct regions **r);

/*
 * Adds an OPEN region from @x->base on and returns it. The caller ensures that there are at most
 * REGIONS_MAX.
 */
struct region *regions_add(struct regions *r, const struct profil_xform *x, const void *buf,
			   __u64 rank);

/*
 * Cuts the regions into sorted pieces in @r->m.start, such that the last one with lo <= pc decides
 * about a pc. Regions that count nothing have no piece, unless @d checks all buffers. Also sets the
 * message's flags, width and cap from @d.
 */
void regions_cut(struct regions *r, const struct dialect *d);

#endif
