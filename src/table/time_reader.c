/* time_reader.c - reads the stacks of a table by slices of time */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "sleeper_reader.h"
#include "time_reader.h"

/*
 * Adds waits until @now_ns to the tree for this slice alone: the next one has the wait again, or
 * its end.
 */
static int take_with_waits(struct time_reader *t, const struct table_reader *r, struct profile *p,
			   __u64 now_ns)
{
	struct call_tree *tree = &t->series.tree;
	size_t n = tree->n;
	__cleanup(freep) __u64 *ended = calloc(n + 1, sizeof(*ended));
	int err;

	if (!ended)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		ended[i] = tree->node[i].count;
	p->calls = *tree;
	err = sleepers_read(r, p, now_ns) ?: slices_take(&t->of, &p->calls);
	*tree = p->calls;
	p->calls = (struct call_tree){ 0 };
	tree->nwakes = 0;
	for (size_t i = 0; i < tree->n; i++)
		tree->node[i].count = i < n ? ended[i] : 0;
	return err;
}

int time_reader_take(struct time_reader *t, struct table_reader *r, __u64 now_ns)
{
	int err = stack_series_read(&t->series, r);
	struct profile *p;

	if (err || !r->table.head->sleepers)
		return err ? err : slices_take(&t->of, &t->series.tree);
	p = profile_borrow(r->profile);
	err = p ? take_with_waits(t, r, p, now_ns) : -ENOMEM;
	profile_give_back(p);
	return err;
}

void time_reader_fini(struct time_reader *t)
{
	slices_fini(&t->of);
	stack_series_fini(&t->series);
}
