/* snapshot.c - the counts of a table at one moment */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clocks.h"
#include "snapshot.h"

static size_t all_bytes; /* memory of all snapshots */

struct snapshot *snapshot_ref(struct snapshot *s)
{
	__atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
	return s;
}

struct snapshot *snapshot_unref(struct snapshot *s)
{
	if (s && !__atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL)) {
		__atomic_sub_fetch(&all_bytes, s->bytes, __ATOMIC_RELAXED);
		source_unref(s->source);
		free(s->count);
		free(s->coarse);
		free(s->node);
		free(s);
	}
	return NULL;
}

static int charge(struct snapshot *s, size_t bytes)
{
	if (__atomic_add_fetch(&all_bytes, bytes, __ATOMIC_RELAXED) > SNAPSHOT_BYTES_MAX) {
		__atomic_sub_fetch(&all_bytes, bytes, __ATOMIC_RELAXED);
		return -ENOBUFS;
	}
	s->bytes += bytes;
	return 0;
}

/* Makes room in array *@at of elements of @each bytes for a line more than its @n elements. */
static int make_room(struct snapshot *s, void *at, size_t each, size_t n, size_t *room)
{
	size_t by = *room ? *room : 4096;
	void *more;

	if (n + PROFIL_LINE_PLACES <= *room)
		return 0;
	if (charge(s, by * each) < 0)
		return -ENOBUFS;
	*room += by;
	more = reallocarray(*(void **)at, *room, each);
	if (!more)
		return -ENOMEM;
	*(void **)at = more;
	return 0;
}

static int take_places(struct snapshot *s)
{
	const struct profil_line *lines = table_lines(&s->source->table);
	size_t room = 0;
	int err;

	for (__u32 i = 0; i < s->source->table.head->lines; i++) {
		if (!lines[i].key[0])
			continue;
		err = make_room(s, &s->count, sizeof(*s->count), s->n, &room);
		if (err < 0)
			return err;
		for (__u32 k = 0; k < PROFIL_LINE_PLACES && lines[i].key[k]; k++) {
			__u64 key = lines[i].key[k];
			__u32 count = __atomic_load_n(&lines[i].count[k], __ATOMIC_RELAXED);

			if (!count || key & PROFIL_PLACE_FOLDED)
				continue;
			s->count[s->n++] =
				(struct snapshot_count){ i * PROFIL_LINE_PLACES + k, count };
			if (!(key & PROFIL_PLACE_SUM))
				s->outcomes.placed += count;
		}
	}
	return 0;
}

static int take_coarse(struct snapshot *s)
{
	const struct table *t = &s->source->table;

	for (__u32 i = 1; i <= t->head->images; i++) {
		const struct profil_image *image = table_image(t, i);
		__u64 count = image ? __atomic_load_n(&image->coarse[0], __ATOMIC_RELAXED) : 0;
		struct snapshot_coarse *more;

		if (!count)
			continue;
		more = reallocarray(s->coarse, s->ncoarse + 1, sizeof(*more));
		if (!more)
			return -ENOMEM;
		s->coarse = more;
		more[s->ncoarse++] = (struct snapshot_coarse){ i, count };
		s->outcomes.placed += count;
	}
	return 0;
}

/* The number of pages of nodes that have any: the others take no memory. */
static size_t pages_of(const struct profil_node *node, __u32 nodes)
{
	size_t pages = 0;

	for (__u32 i = 0; i < nodes; i += PROFIL_PAGE_NODES) {
		__u32 k = i;

		while (k < nodes && k < i + PROFIL_PAGE_NODES && !node[k].id)
			k++;
		pages += k < nodes && k < i + PROFIL_PAGE_NODES;
	}
	return pages;
}

/*
 * The kernel counted on between places and stacks. Samples whose place was not read are taken away,
 * of nodes that have grown since @last, so that counts never decrease from one snapshot to the
 * next. A sample whose place was read in @last without its stack stays without, so that stacks do
 * not grow by more than samples: differences then add up without a limit of their own.
 */
static void limit_stacks(struct snapshot *s, const struct snapshot *last)
{
	bool is_later = last && last->node && last->source == s->source;
	bool is_next = is_later && last->folds == s->folds;
	__u64 sum = 0, most = s->outcomes.total - (is_later ? last->stackless : 0);
	__u32 nodes = s->head.nodes;

	for (__u32 i = 0; i < nodes; i++)
		sum += s->node[i].count;
	for (__u32 i = nodes; i-- > 0 && sum > most;) {
		__u32 *count = &s->node[i].count;
		__u32 grown = *count - (is_next ? last->node[i].count : 0);
		__u32 over = sum - most < grown ? (__u32)(sum - most) : grown;

		*count -= over;
		sum -= over;
	}
	s->stackless = s->outcomes.total - sum;
}

/* The samples of a group's sum, NULL: it is a place. */
static const __u32 *sum_of(const struct snapshot *s, const struct snapshot_count *c)
{
	const struct profil_line *line =
		&table_lines(&s->source->table)[c->slot / PROFIL_LINE_PLACES];
	__u32 k = c->slot % PROFIL_LINE_PLACES;

	return line->key[k] & PROFIL_PLACE_SUM ? &line->count[k] : NULL;
}

/*
 * Likewise the samples of groups, which must not be more than those of places. They are read once
 * more, after the places, so that no place is without a group.
 */
static void limit_groups(struct snapshot *s, const struct snapshot *last)
{
	bool is_later = last && last->source == s->source;
	__u64 sum = 0, most = s->outcomes.placed - (is_later ? last->groupless : 0);
	size_t k = is_later ? last->n : 0;

	for (size_t i = 0; i < s->n; i++) {
		const __u32 *count = sum_of(s, &s->count[i]);

		if (count)
			s->count[i].count = __atomic_load_n(count, __ATOMIC_RELAXED);
		sum += count ? s->count[i].count : 0;
	}
	for (size_t i = s->n; i-- > 0 && sum > most;) {
		struct snapshot_count *c = &s->count[i];
		__u64 grown = sum_of(s, c) ? c->count : 0, over;

		while (k && last->count[k - 1].slot > c->slot)
			k--;
		if (grown && k && last->count[k - 1].slot == c->slot)
			grown -= last->count[k - 1].count;
		over = sum - most < grown ? sum - most : grown;
		c->count -= (__u32)over;
		sum -= over;
	}
	s->groupless = s->outcomes.placed - sum;
}

static int take_stacks(struct snapshot *s, const struct snapshot *last)
{
	const struct table *t = &s->source->table;

	if (!t->head->stack_mode)
		return 0;
	s->node = calloc(t->head->nodes, sizeof(*s->node));
	if (!s->node)
		return -ENOMEM;
	s->folds = stack_reader_copy(t, s->node);
	limit_stacks(s, last);
	return charge(s, pages_of(s->node, t->head->nodes) * PROFIL_TABLE_PAGE);
}

int snapshot_take(struct snapshot **out, struct source *source, __u64 id,
		  const struct snapshot *last)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->refs = 1;
	s->id = id;
	s->source = source_ref(source);
	s->taken_ns = clock_ns(CLOCK_MONOTONIC);
	s->boot_ns = clock_ns(CLOCK_BOOTTIME);
	s->real_ns = clock_ns(CLOCK_REALTIME);
	s->head = *source->table.head;
	err = take_places(s) ?: take_coarse(s);
	s->outcomes.unmatched = s->head.unmatched;
	s->outcomes.lost = s->head.lost + s->head.image_full;
	s->outcomes.total = s->outcomes.placed + s->outcomes.unmatched + s->outcomes.lost;
	limit_groups(s, last);
	err = err ?: take_stacks(s, last);
	if (err < 0) {
		snapshot_unref(s);
		return err;
	}
	*out = s;
	return 0;
}
