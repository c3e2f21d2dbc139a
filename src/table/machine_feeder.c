/* machine_feeder.c - feeds the machine's profile the unwind rows of what is sampled */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "symbols/proc/procfs.h"
#include "symbols/symbolize_cache.h"

#include "machine_feeder.h"

/*
 * A full map is looked at in this interval. Rows for all of it are read from the cache of tables in
 * some 100 ms, during which stacks are cut.
 */
#define LOOK_NS 600000000000u
#define RETRY_NS 60000000000u /* in which users have time for their files again: file_account.h */
#define RETRY_MOST 16	      /* files of one look that still find none */
#define CUT_PERCENT 1	      /* of the stacks, at files without room: it is laid out anew */

#define PATH_MOST 1024 /* nodes of a stack: more than the kernel enters */

/* Adds to frames[i] the frames of image i in all stacks so far. Returns the number of stacks. */
static __u64 count_frames(const struct machine_feeder *m, __u64 *frames)
{
	const struct table *t = &m->reader.table;
	__u64 stacks = 0;

	for (__u32 i = 0; i < t->head->nodes; i++) {
		__u32 count = table_node(t, i)->count, at = PROFIL_STACK_ROOTS + i;

		stacks += count;
		for (int k = 0; count && k < PATH_MOST && at >= PROFIL_STACK_ROOTS &&
				at - PROFIL_STACK_ROOTS < t->head->nodes;
		     k++) {
			const struct profil_node *node = table_node(t, at - PROFIL_STACK_ROOTS);
			__u32 image = profil_place_image(node->place);

			frames[image <= t->head->images ? image : 0] += count;
			at = node->parent;
		}
	}
	return stacks;
}

struct ranked {
	__u32 image;
	__u64 frames;
};

static int by_frames(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return x->frames != y->frames ? (x->frames < y->frames) - (x->frames > y->frames)
				      : (x->image > y->image) - (x->image < y->image);
}

/* Gives rows to images in the order of @ranked, until the map is full. */
static void lay_out(struct machine_feeder *m, const struct ranked *ranked, size_t n)
{
	unwind_feeder_clear(&m->feeder);
	m->laid_out++;
	for (size_t i = 0; i < n; i++) {
		__u32 image = ranked[i].image;

		if (!m->reader.object[image])
			continue;
		table_reader_reopen(&m->reader, m->reader.object[image] - 1);
		unwind_feeder_image(&m->feeder, &m->reader, image);
	}
}

/* Says whether files without room cut many of the @stacks since the last look. */
static bool is_wrong(const struct machine_feeder *m, const struct ranked *ranked, __u64 stacks)
{
	__u64 cut = 0;

	for (__u32 i = 0; i < m->reader.table.head->images; i++) {
		if (unwind_feeder_lacks_room(&m->feeder, ranked[i].image))
			cut += ranked[i].frames;
	}
	return cut * 100 > stacks * CUT_PERCENT;
}

/* Feeds images that waited for it, in the order of @ranked. */
static void feed_waiting(struct machine_feeder *m, const struct ranked *ranked, size_t n)
{
	int failed = 0;

	for (size_t i = 0; i < n && m->feeder.waiting && failed < RETRY_MOST; i++) {
		__u32 image = ranked[i].image;

		if (m->feeder.fed[image] != UNWIND_WAITS)
			continue;
		table_reader_reopen(&m->reader, m->reader.object[image] - 1);
		unwind_feeder_image(&m->feeder, &m->reader, image);
		failed += m->feeder.fed[image] == UNWIND_WAITS;
	}
}

/*
 * Looks at all stacks. Lays the map out anew if that is better or, with @always, in any case; else
 * feeds what waits.
 */
static int look(struct machine_feeder *m, bool always)
{
	__u32 images = m->reader.table.head->images;
	__cleanup(freep) struct ranked *ranked = calloc(images + 1, sizeof(*ranked));
	__cleanup(freep) __u64 *frames = calloc(images + 1, sizeof(*frames));
	__u64 stacks, before;

	if (!ranked || !frames)
		return -ENOMEM;
	stacks = count_frames(m, frames);
	before = m->frames[0];
	frames[0] = stacks; /* no image has number 0 */
	for (__u32 i = 1; i <= images; i++)
		ranked[i - 1] =
			(struct ranked){ i,
					 frames[i] > m->frames[i] ? frames[i] - m->frames[i] : 0 };
	qsort(ranked, images, sizeof(*ranked), by_frames);
	if (always || is_wrong(m, ranked, stacks > before ? stacks - before : 0))
		lay_out(m, ranked, images);
	else
		feed_waiting(m, ranked, images);
	memcpy(m->frames, frames, (images + 1) * sizeof(*frames));
	m->look_ns = now_ns();
	return 0;
}

/* Says whether it is time to look at a full map, or at files that wait. */
static bool is_look_due(const struct machine_feeder *m)
{
	__u64 every_ns = m->feeder.waiting ? RETRY_NS : LOOK_NS;

	return (m->feeder.waiting || m->feeder.full) && now_ns() - m->look_ns >= every_ns;
}

/* The files of what runs get rows before their first sample. */
static void prepare(struct machine_feeder *m)
{
	const struct procfs_select all = { 0 };
	__cleanup(freep) pid_t *pids = NULL;
	size_t n = 0;

	if (procfs_find(&pids, &n, &all) == 0)
		unwind_feeder_prepare_all(&m->feeder, pids, n);
}

static void close_files(struct machine_feeder *m)
{
	struct symbolize_cache none = { 0 };

	symbolize_cache_renew(&none, m->profile, now_ns());
}

int machine_feeder_open(struct machine_feeder *m, int table, int unwind)
{
	int err;

	*m = (struct machine_feeder){ .profile = profile_new() };
	if (!m->profile)
		return -ENOMEM;
	err = table_reader_open(&m->reader, table, m->profile);
	if (err)
		return err;
	err = unwind_feeder_open(&m->feeder, unwind, &m->reader.table);
	if (err)
		return err;
	m->feeder.shared = true;
	m->frames = calloc(m->reader.table.head->images + 1, sizeof(*m->frames));
	err = m->frames ? table_reader_update_images(&m->reader) ?: look(m, true) : -ENOMEM;
	prepare(m);
	close_files(m);
	return err;
}

int machine_feeder_update(struct machine_feeder *m)
{
	int err = 0;

	if (m->reader.table.head->used_images > m->reader.images) {
		err = table_reader_update_images(&m->reader);
		unwind_feeder_update(&m->feeder, &m->reader);
		close_files(m);
	}
	if (err || !is_look_due(m))
		return err;
	err = look(m, false);
	close_files(m);
	return err;
}

void machine_feeder_close(struct machine_feeder *m)
{
	unwind_feeder_close(&m->feeder);
	table_reader_close(&m->reader);
	profile_free(m->profile);
	free(m->frames);
	*m = (struct machine_feeder){ 0 };
}
