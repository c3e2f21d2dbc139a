/* overlap.c - cuts overlapping regions into pieces that do not overlap */
#include <stdint.h>
#include <string.h>

#include "entry.h"
#include "overlap.h"
#include "xform.h"

/*
 * A dialect lets regions overlap and says which one decides about a pc. The daemon and the BPF
 * program know no such rule: they search a sorted list of pieces for the last one with lo <= pc and
 * apply its arithmetic. The cutting sweeps the address space once, from 0 upwards.
 *
 * Two heaps hold indices of regions. "waiting" has those that begin above the sweep's pc, the
 * lowest first. "open" has those that have begun, the smallest rank first; a region that has ended
 * is dropped when it reaches the top. The winner at a pc is the top of "open". If that is ALONE or
 * SHUT and has no counter for the pc, the winner is the overflow bin or none.
 *
 * The winner can only change where a region begins or where the winner's counters end, so the sweep
 * jumps from one such pc to the next, and a new piece begins where the winner changes. Each region
 * begins once and, as a winner, ends at most once: at most 2n + 1 pieces. A piece has the
 * arithmetic of its whole region, so its first pc may have any of the region's counters. It ends
 * where the next piece begins, or where its span ends. Pieces of one region name the first of them
 * as their owner and share its counters.
 */
#define NO_REGION UINT16_MAX
#define NO_OWNER UINT32_MAX

/* A heap of indices of regions. Not qsort(), which may call malloc(). */
struct heap {
	__u16 *at;
	unsigned int n;
	const struct region *in;
	int (*before)(const struct region *in, __u16 a, __u16 b);
};

static int starts_before(const struct region *in, __u16 a, __u16 b)
{
	return in[a].lo < in[b].lo;
}

static int goes_before(const struct region *in, __u16 a, __u16 b)
{
	return in[a].rank != in[b].rank ? in[a].rank < in[b].rank : a < b;
}

static void heap_push(struct heap *h, __u16 region)
{
	unsigned int i = h->n++;

	for (; i && h->before(h->in, region, h->at[(i - 1) / 2]); i = (i - 1) / 2)
		h->at[i] = h->at[(i - 1) / 2];
	h->at[i] = region;
}

static __u16 heap_pop(struct heap *h)
{
	__u16 top = h->at[0], last = h->at[--h->n];
	unsigned int i = 0, child;

	while ((child = 2 * i + 1) < h->n) {
		if (child + 1 < h->n && h->before(h->in, h->at[child + 1], h->at[child]))
			child++;
		if (!h->before(h->in, h->at[child], last))
			break;
		h->at[i] = h->at[child];
		i = child;
	}
	h->at[i] = last;
	return top;
}

/* The last pc that @r has a counter for; the end may be 2^64. There is one if the span is not 0. */
static __u64 last_pc(const struct region *r)
{
	return r->x.base + (r->x.span - 1);
}

static int counts(const struct region *r, __u64 pc)
{
	return r->kind != REGION_SHUT && r->x.span && pc <= last_pc(r);
}

/* Opens the regions that begin up to @pc, drops those past their end; returns the winner at @pc. */
static __u16 winner_at(const struct regions *r, struct heap *waiting, struct heap *open, __u64 pc)
{
	const struct region *top;

	while (waiting->n && waiting->in[waiting->at[0]].lo <= pc)
		heap_push(open, heap_pop(waiting));
	while (open->n && open->in[open->at[0]].kind == REGION_OPEN &&
	       !counts(&open->in[open->at[0]], pc))
		heap_pop(open);
	if (!open->n)
		return NO_REGION;
	top = &open->in[open->at[0]];
	if (counts(top, pc))
		return open->at[0];
	if (top->kind == REGION_ALONE && r->overflow < r->n && counts(&r->region[r->overflow], pc))
		return (__u16)r->overflow;
	return NO_REGION;
}

/* The next pc at which the winner may change; 0 where there is none. */
static __u64 next_change(const struct heap *waiting, __u16 winner)
{
	__u64 start = waiting->n ? waiting->in[waiting->at[0]].lo : 0;
	__u64 end = winner == NO_REGION ? 0 : last_pc(&waiting->in[winner]) + 1;

	if (!start || !end)
		return start + end;
	return start < end ? start : end;
}

/* Ends the last piece before @pc, from where on nothing counts. */
static void end_piece(struct regions *r, __u64 pc)
{
	struct profil_msg_start *m = &r->m.start;

	if (m->nregions)
		xform_clip(&m->region[m->nregions - 1].x, pc);
}

static void add_piece(struct regions *r, __u16 winner, __u64 lo)
{
	struct profil_msg_start *m = &r->m.start;
	const struct region *from = &r->region[winner];

	if (r->owner[winner] == NO_OWNER)
		r->owner[winner] = m->nregions;
	m->region[m->nregions++] = (struct profil_msg_region){
		.lo = lo, .x = from->x, .addr = from->addr, .owner = r->owner[winner]
	};
}

/*
 * Names the buffers of regions that never win, so that they are checked: by pieces without a span,
 * which cover no pc, before all others.
 */
static void show_hidden(struct regions *r)
{
	struct profil_msg_start *m = &r->m.start;
	__u32 n = 0, pieces = m->nregions;

	for (unsigned int i = 0; i < r->n; i++)
		n += r->region[i].x.span && r->owner[i] == NO_OWNER;
	memmove(&m->region[n], m->region, pieces * sizeof(*m->region));
	for (__u32 i = n; i < n + pieces; i++)
		m->region[i].owner += n;
	m->nregions = 0;
	for (unsigned int i = 0; i < r->n; i++) {
		if (!r->region[i].x.span || r->owner[i] != NO_OWNER)
			continue;
		add_piece(r, (__u16)i, 0);
		m->region[m->nregions - 1].x.span = 0;
	}
	m->nregions = n + pieces;
}

void regions_cut(struct regions *r, const struct dialect *d)
{
	struct heap waiting = { r->waiting, 0, r->region, starts_before };
	struct heap open = { r->open, 0, r->region, goes_before };
	__u16 winner = NO_REGION, before;
	__u64 pc = 0;

	r->m.start.flags = d->flags;
	r->m.start.width = d->width;
	r->m.start.cap = d->cap;
	r->m.start.nregions = 0;
	for (unsigned int i = 0; i < r->n; i++) {
		const struct region *in = &r->region[i];

		r->owner[i] = NO_OWNER;
		if (in->kind != REGION_OPEN || (in->x.span && in->lo <= last_pc(in)))
			heap_push(&waiting, (__u16)i);
	}

	do {
		before = winner;
		winner = winner_at(r, &waiting, &open, pc);
		if (winner != before && winner == NO_REGION)
			end_piece(r, pc);
		else if (winner != before)
			add_piece(r, winner, pc);
		pc = next_change(&waiting, winner);
	} while (pc);
	if (d->flags & PROFIL_START_CHECK)
		show_hidden(r);
}

struct regions *regions_new(void)
{
	struct regions *r = call_alloc(sizeof(*r));

	if (r)
		r->overflow = REGIONS_MAX;
	return r;
}

void regions_freep(struct regions **r)
{
	call_free(*r, sizeof(**r));
}

struct region *regions_add(struct regions *r, const struct profil_xform *x, const void *buf,
			   __u64 rank)
{
	struct region *in = &r->region[r->n++];

	*in = (struct region){ .lo = x->base, .x = *x, .addr = (unsigned long)buf, .rank = rank };
	return in;
}
