/* difference.c - the samples between two snapshots */
#include <errno.h>
#include <stdlib.h>

#include "difference.h"

static int add_coarse(struct difference *d, const struct names *n, __u32 image, __u64 count)
{
	struct place place = { .count = count };

	if (!n->reader.object[image]) {
		d->outcomes.lost += count;
		return 0;
	}
	place.object = n->reader.object[image] - 1;
	return places_add(&d->places, &place);
}

/* As in table_reader: samples of an image that was claimed but never completed are lost. */
static int add_place(struct difference *d, const struct names *n, __u64 key, __u64 count)
{
	__u32 image = profil_place_image(key), group = profil_place_group(key);
	const struct profil_table *head = n->reader.table.head;
	struct place place = { .count = count };

	if (!image || image > head->images || !n->reader.object[image]) {
		d->outcomes.lost += key & PROFIL_PLACE_SUM ? 0 : count;
		return 0;
	}
	place.object = n->reader.object[image] - 1;
	if (key & PROFIL_PLACE_SUM) {
		place.group = group <= head->groups ? n->reader.group[group] : 0;
		return places_add(&d->sums, &place);
	}
	table_reader_locate(&n->reader, &place, image, profil_place_offset(key));
	return places_add(&d->places, &place);
}

/* Both are sorted by slot, and the later one has all slots of the earlier one. */
static int subtract_places(struct difference *d, const struct names *n)
{
	const struct profil_line *lines = table_lines(&n->reader.table);
	const struct snapshot *from = d->from, *to = d->to;
	size_t i = 0, nfrom = from ? from->n : 0;
	int err = 0;

	for (size_t k = 0; k < to->n && !err; k++) {
		__u32 slot = to->count[k].slot, before = 0;

		while (i < nfrom && from->count[i].slot < slot)
			i++;
		if (i < nfrom && from->count[i].slot == slot)
			before = from->count[i].count;
		if (to->count[k].count > before)
			err = add_place(
				d, n,
				lines[slot / PROFIL_LINE_PLACES].key[slot % PROFIL_LINE_PLACES],
				to->count[k].count - before);
	}
	return err;
}

static int subtract_coarse(struct difference *d, const struct names *n)
{
	const struct snapshot *from = d->from, *to = d->to;
	size_t i = 0, nfrom = from ? from->ncoarse : 0;
	int err = 0;

	for (size_t k = 0; k < to->ncoarse && !err; k++) {
		__u32 image = to->coarse[k].image;
		__u64 before = 0;

		while (i < nfrom && from->coarse[i].image < image)
			i++;
		if (i < nfrom && from->coarse[i].image == image)
			before = from->coarse[i].count;
		if (to->coarse[k].count > before)
			err = add_coarse(d, n, image, to->coarse[k].count - before);
	}
	return err;
}

/* Nodes may have been folded into their callers between the two. */
static int subtract_stacks(struct difference *d, const struct names *n)
{
	struct call_tree last = { 0 }, now = { 0 };
	int err = stack_reader_read_copy(&n->reader, d->to->node, &now);

	if (!err && d->from)
		err = stack_reader_read_copy(&n->reader, d->from->node, &last);
	if (!err && now.n)
		err = call_tree_difference(&d->stacks, &last, &now, d->outcomes.total);
	call_tree_fini(&last);
	call_tree_fini(&now);
	return err;
}

static void set_times(struct difference *d)
{
	const struct profil_table *head = &d->to->head;

	if (d->from) {
		d->began_ns = d->from->real_ns;
		d->duration_ns = d->to->taken_ns - d->from->taken_ns;
		return;
	}
	d->began_ns = head->started_real_ns;
	d->duration_ns = d->to->boot_ns - head->started_ns;
}

int difference_init(struct difference *d, const struct names *n, const struct snapshot *from,
		    const struct snapshot *to, bool stacks)
{
	int err;

	*d = (struct difference){ .from = from, .to = to };
	set_times(d);
	d->outcomes.unmatched = to->outcomes.unmatched - (from ? from->outcomes.unmatched : 0);
	d->outcomes.lost = to->outcomes.lost - (from ? from->outcomes.lost : 0);
	err = subtract_places(d, n) ?: subtract_coarse(d, n);
	d->outcomes.placed = d->places.sum;
	d->outcomes.total = d->outcomes.placed + d->outcomes.unmatched + d->outcomes.lost;
	return err || !stacks || !to->node ? err : subtract_stacks(d, n);
}

void difference_fini(struct difference *d)
{
	places_fini(&d->places);
	places_fini(&d->sums);
	call_tree_fini(&d->stacks);
}
