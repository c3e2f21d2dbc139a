/* image.c - the kernel's counters for one process's mappings, as a reader maps them */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/layout.h"
#include "core/scope.h"

#include "core/arch.h"
#include "image.h"
#include "mapped.h"

#define IMAGE_REGIONS 4096 /* of more mappings the lowest; the others' ticks come one by one */
#define IMAGE_RETRIES 4
#define IMAGE_CHUNKS (IMAGE_COUNTERS_MAX / PROFIL_CHUNK_COUNTERS + 1)

struct image_region {
	__u64 lo;
	__u64 hi;
	__u64 offset; /* of lo in its object */
	__u32 object;
	__u32 nbins;
};

struct image {
	struct image_region *regions;
	size_t nregions;
	unsigned int pre; /* a bin is 1 << pre bytes */
	const struct profil_chunk *chunks[IMAGE_CHUNKS];
	unsigned int nchunks;
};

/* The kernel's own page for system calls of old: it is not the process's code. */
static bool counted(const struct mapping *m)
{
	return strcmp(m->path, "[vsyscall]") != 0;
}

static __u32 bins(__u64 span, unsigned int pre)
{
	return (__u32)((span + (1ull << pre) - 1) >> pre);
}

unsigned int image_granularity(const struct maps *maps, __u64 counters, unsigned int finest)
{
	unsigned int pre = finest;

	for (; pre < 40; pre++) {
		__u64 sum = 0;

		for (size_t i = 0; i < maps->n && sum <= counters; i++) {
			__u64 span = maps->mapping[i].hi - maps->mapping[i].lo;

			/* Whole groups: and no span overflows the 32 bits of a number of bins. */
			if (counted(&maps->mapping[i]))
				sum += ((span >> pre) / PROFIL_GROUP_COUNTERS + 1) *
				       PROFIL_GROUP_COUNTERS;
		}
		if (sum <= counters)
			break;
	}
	return pre;
}

static int set_regions(struct image *image, const struct maps *maps)
{
	image->nregions = 0;
	for (size_t i = 0; i < maps->n && image->nregions < IMAGE_REGIONS; i++) {
		const struct mapping *m = &maps->mapping[i];

		if (!counted(m))
			continue;
		image->regions[image->nregions++] =
			(struct image_region){ .lo = m->lo,
					       .hi = m->hi,
					       .offset = mapped_offset(m, m->lo),
					       .object = m->object,
					       .nbins = bins(m->hi - m->lo, image->pre) };
	}
	return image->nregions ? 0 : -ESRCH;
}

static void fill(const struct image *image, struct profil_msg_region *out)
{
	for (size_t i = 0; i < image->nregions; i++) {
		const struct image_region *r = &image->regions[i];

		out[i] = (struct profil_msg_region){ .lo = r->lo,
						     .x = { .base = r->lo,
							    .span = r->hi - r->lo,
							    .mul = 1,
							    .nbins = r->nbins,
							    .pre = (__u8)image->pre },
						     .owner = (__u32)i };
	}
}

/* Maps the chunks and closes @fds. */
static int map_chunks(struct image *image, const int *fds, unsigned int n)
{
	int err = n > IMAGE_CHUNKS ? -EPROTO : 0;

	for (unsigned int i = 0; i < n; i++) {
		struct profil_chunk *chunk = MAP_FAILED;

		if (!err)
			chunk = mmap(NULL, sizeof(*chunk), PROT_READ, MAP_SHARED, fds[i], 0);
		if (!err && chunk == MAP_FAILED)
			err = -errno;
		if (!err)
			image->chunks[image->nchunks++] = chunk;
		close(fds[i]);
	}
	return err;
}

/* Says whether the chunks have room for all regions; the daemon is not trusted with our memory. */
static bool has_room(const struct image *image)
{
	__u64 sum = 0;

	for (size_t i = 0; i < image->nregions; i++)
		sum += profil_counters_for(image->regions[i].nbins);
	return sum <= (__u64)image->nchunks * PROFIL_CHUNK_COUNTERS;
}

static int request(struct image *image, struct reader *r, __u32 tgid, __u16 execs)
{
	__cleanup(freep) struct profil_msg_region *regions =
		calloc(image->nregions, sizeof(*regions));
	unsigned int nfds = PROFIL_MSG_FDS;
	int fds[PROFIL_MSG_FDS];
	int err;

	if (!regions)
		return -ENOMEM;
	fill(image, regions);
	err = reader_image(r, tgid, execs, regions, (unsigned int)image->nregions, fds, &nfds);
	if (err < 0)
		return err;
	err = map_chunks(image, fds, nfds);
	return err ? err : has_room(image) ? 0 : -EPROTO;
}

static void closep_image(struct image **image)
{
	image_close(*image);
}

int image_open(struct image **out, struct reader *r, __u32 tgid, __u16 execs,
	       const struct maps *maps, __u64 counters)
{
	__cleanup(closep_image) struct image *image = calloc(1, sizeof(*image));
	int err = -ENOMEM;

	if (!image)
		return -ENOMEM;
	image->regions = calloc(IMAGE_REGIONS, sizeof(*image->regions));
	if (!image->regions)
		return -ENOMEM;
	for (int i = 0; i < IMAGE_RETRIES; i++, counters /= 4) {
		image->pre = image_granularity(maps, counters, ARCH_PC_SHIFT);
		err = set_regions(image, maps);
		if (!err)
			err = request(image, r, tgid, execs);
		if (!err)
			break;
		if (err != -ENOMEM && err != -EAGAIN)
			return err;
	}
	if (err < 0)
		return err == -ESRCH ? err : -ENOSPC;
	*out = steal(image);
	return 0;
}

bool image_covers(const struct image *image, __u64 pc)
{
	size_t lo = 0, hi = image->nregions;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (image->regions[mid].hi <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < image->nregions && pc >= image->regions[lo].lo;
}

/* The 64 counters of @group, counted from the image's first; NULL: no tick fell there. */
static const __u32 *group_of(const struct image *image, __u64 group)
{
	const struct profil_chunk *chunk = image->chunks[group / PROFIL_CHUNK_GROUPS];
	size_t g = group % PROFIL_CHUNK_GROUPS;

	if (!*(const volatile __u8 *)&chunk->dirty[g])
		return NULL;
	return &chunk->count[g * PROFIL_GROUP_COUNTERS];
}

/* Calls @add for each counter that is not 0. */
static int each(const struct image *image,
		int (*add)(void *, const struct image_region *, __u32 bin, __u32 count), void *ctx)
{
	__u64 first = 0; /* group */

	for (size_t i = 0; i < image->nregions; i++) {
		const struct image_region *r = &image->regions[i];
		__u64 groups = profil_counters_for(r->nbins) / PROFIL_GROUP_COUNTERS;

		for (__u64 g = 0; g < groups; g++) {
			const volatile __u32 *counter = group_of(image, first + g);
			int err = 0;

			for (__u32 c = 0; counter && c < PROFIL_GROUP_COUNTERS && !err; c++) {
				__u32 count = counter[c];

				if (count)
					err = add(ctx, r, (__u32)g * PROFIL_GROUP_COUNTERS + c,
						  count);
			}
			if (err < 0)
				return err;
		}
		first += groups;
	}
	return 0;
}

static int add_sum(void *ctx, const struct image_region *r, __u32 bin, __u32 count)
{
	(void)r;
	(void)bin;
	*(__u64 *)ctx += count;
	return 0;
}

__u64 image_sum(const struct image *image)
{
	__u64 sum = 0;

	each(image, add_sum, &sum);
	return sum;
}

struct add_ctx {
	struct profile *profile;
	unsigned int pre;
};

static int add_place(void *ctx, const struct image_region *r, __u32 bin, __u32 count)
{
	const struct add_ctx *a = ctx;
	__u64 at = (__u64)bin << a->pre, left = r->hi - r->lo - at, width = 1ull << a->pre;

	a->profile->saturated += count == UINT32_MAX;
	return profile_add_place(a->profile, r->object, r->offset + at,
				 (__u32)(width < left ? width : left), count);
}

int image_add(const struct image *image, struct profile *p)
{
	struct add_ctx ctx = { p, image->pre };

	return each(image, add_place, &ctx);
}

void image_close(struct image *image)
{
	if (!image)
		return;
	for (unsigned int i = 0; i < image->nchunks; i++)
		munmap((void *)image->chunks[i], sizeof(*image->chunks[i]));
	free(image->regions);
	free(image);
}
