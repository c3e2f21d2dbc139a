/* regions.h - regions that overlap, cut into pieces that do not */
#ifndef PROFIL_REGIONS_H
#define PROFIL_REGIONS_H

#include "core/layout.h"
#include "core/proto.h"
#include "dialect.h"

#define REGIONS_MAX 4096
#define REGIONS_PIECES (2 * REGIONS_MAX + 1)
_Static_assert(REGIONS_PIECES <= PROFIL_TARGET_REGIONS, "what the daemon takes");

/*
 * Takes the pcs from @lo to the end of @x's span, unless a region of smaller @rank, or of the same
 * rank and added earlier, takes them too.
 */
struct region {
	__u64 lo;
	struct profil_xform x;
	__u64 addr;
	__u64 rank;
};

/*
 * A call's regions, the space to cut them in, and the START message that the pieces go into. All
 * of it in one mapping, of which only the pages that are used cost anything.
 */
struct regions {
	unsigned int n;
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

/* Adds a region from @x->base on; the caller sees to it that there are at most REGIONS_MAX. */
void regions_add(struct regions *r, const struct profil_xform *x, const void *buf, __u64 rank);

/*
 * Cuts the regions into the pieces of @r->m.start, sorted, such that the last one with lo <= pc
 * decides about a pc. Regions that count nothing leave no piece, unless @d has all buffers checked.
 * The message asks for what @d does with its counters.
 */
void regions_cut(struct regions *r, const struct dialect *d);

#endif
