/* regions.c - regions that overlap, cut into pieces that do not */
#include <stdint.h>

#include "call.h"
#include "regions.h"

#define NO_REGION UINT16_MAX
#define NO_OWNER UINT32_MAX

/* Indexes of regions, the foremost on top; qsort() may call malloc(), a heap sorts in place. */
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

/* The last pc of @r; its end may be 2^64. */
static __u64 last_pc(const struct region *r)
{
	return r->x.base + (r->x.span - 1);
}

/* Opens what starts at or before @pc, closes what is past its end; returns who wins there. */
static __u16 winner_at(struct heap *waiting, struct heap *open, __u64 pc)
{
	while (waiting->n && waiting->in[waiting->at[0]].lo <= pc)
		heap_push(open, heap_pop(waiting));
	while (open->n && last_pc(&open->in[open->at[0]]) < pc)
		heap_pop(open);
	return open->n ? open->at[0] : NO_REGION;
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

/* Regions that never win get a piece where no pc is, so that their buffers are checked as well. */
static void show_hidden(struct regions *r)
{
	for (unsigned int i = 0; i < r->n; i++) {
		if (r->region[i].x.span && r->owner[i] == NO_OWNER)
			add_piece(r, (__u16)i, UINT64_MAX);
	}
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
		r->owner[i] = NO_OWNER;
		if (r->region[i].x.span && r->region[i].lo <= last_pc(&r->region[i]))
			heap_push(&waiting, (__u16)i);
	}

	/* Nobody's pcs need no piece: the one before them ends by its own span. */
	do {
		before = winner;
		winner = winner_at(&waiting, &open, pc);
		if (winner != NO_REGION && winner != before)
			add_piece(r, winner, pc);
		pc = next_change(&waiting, winner);
	} while (pc);
	if (d->flags & PROFIL_START_CHECK)
		show_hidden(r);
}

struct regions *regions_new(void)
{
	return call_alloc(sizeof(struct regions));
}

void regions_freep(struct regions **r)
{
	call_free(*r, sizeof(**r));
}

void regions_add(struct regions *r, const struct profil_xform *x, const void *buf, __u64 rank)
{
	r->region[r->n++] =
		(struct region){ .lo = x->base, .x = *x, .addr = (unsigned long)buf, .rank = rank };
}
