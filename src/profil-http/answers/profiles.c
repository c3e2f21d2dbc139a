/* profiles.c - a difference as a profile: folded, and as the page without a spool */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/format.h"
#include "symbols/symbolize.h"
#include "profiles.h"

/* Makes a profile that shares the objects of @n; profile_give_back() frees it. */
static int profile_of(struct profile **out, struct names *n, struct difference *d)
{
	struct profile *p = profile_borrow(n->profile);
	int err = p ? places_add_all(&p->places, &d->places) ?: places_add_all(&p->sums, &d->sums)
		    : -ENOMEM;

	if (!err) {
		p->calls = d->stacks;
		d->stacks = (struct call_tree){ 0 };
		call_tree_limit(&p->calls, d->outcomes.total - d->outcomes.lost);
		p->tick_ns = d->to->head.period_ns;
		p->started = (time_t)(d->began_ns / 1000000000u);
		p->duration_ns = d->duration_ns;
		p->binned = d->outcomes.placed;
		p->unmatched = d->outcomes.unmatched;
		p->lost = d->outcomes.lost;
		p->total = d->outcomes.total;
		p->command = strdup(PROFILE_MACHINE);
		err = p->command ? symbolize(p, &n->symbols) : -ENOMEM;
	}
	if (err < 0)
		profile_give_back(p);
	else
		*out = p;
	return err;
}

int profiles_answer_folded(struct answer **out, struct names *n, struct difference *d)
{
	struct profile *p = NULL;
	char *bytes = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&bytes, &size);
	int err = f ? profile_of(&p, n, d) ?: folded_write(f, p) : -ENOMEM;

	if (f && fclose(f))
		err = err ?: -ENOMEM;
	profile_give_back(p);
	if (!err)
		*out = answer_new(200, "text/plain; charset=utf-8", steal(bytes), size);
	free(bytes);
	return err;
}

int profiles_answer_page(struct answer **out, struct names *n, struct difference *d,
			 const struct host_identity *host, const struct graph_query *q)
{
	struct profile *p = NULL;
	int err = profile_of(&p, n, d) ?: graph_answer_of(out, p, host, q);

	profile_give_back(p);
	return err;
}
