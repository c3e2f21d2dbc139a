/* image.h - the kernel's counters for one process's mappings, as a reader maps them */
#ifndef PROFIL_IMAGE_H
#define PROFIL_IMAGE_H

#include <stdbool.h>
#include <linux/types.h>

#include "maps.h"
#include "profile.h"
#include "reader.h"

struct image;

/* A session's only image may have so many; of one that has many, each makes do with fewer. */
#define IMAGE_COUNTERS_MAX (4u << 20)
#define IMAGE_COUNTERS_MIN (256u << 10)

/*
 * Has the daemon count process @tgid by its @maps, and returns an image of the counters; of a
 * process that had one before, the kernel leaves the old one alone from then on. @execs is how many
 * it had done when they were read. It takes at most @counters counters, 4 bytes of the kernel's
 * memory each. A negative errno says why not: -ESTALE where they are another
 * program's by now, -ENOSPC where the daemon has no room for it.
 */
int image_open(struct image **out, struct reader *r, __u32 tgid, __u16 execs,
	       const struct maps *maps, __u64 counters);

/* Says whether the kernel counts @pc in here. */
bool image_covers(const struct image *image, __u64 pc);

/* The ticks in it so far. */
__u64 image_sum(const struct image *image);

/* Adds them to @p. Returns 0 or -ENOMEM. */
int image_add(const struct image *image, struct profile *p);

void image_close(struct image *image);

/*
 * The exponent of the finest bins that count @maps with at most @counters counters, from @finest
 * on. For image_open() and its test.
 */
unsigned int image_granularity(const struct maps *maps, __u64 counters, unsigned int finest);

#endif
