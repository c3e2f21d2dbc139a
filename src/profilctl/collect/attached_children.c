/* attached_children.c - the CPU time of children of attached processes */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "attached_children.h"
#include "descendants.h"
#include "symbols/proc/procfs.h"

void attached_children_begin(struct attached_children *c, const pid_t *pids, size_t n)
{
	__cleanup(freep) pid_t *found = NULL;
	size_t nfound;

	if (descendants(&found, &nfound, pids, n))
		return;
	c->attached = calloc(n + 1, sizeof(*c->attached));
	c->earlier = calloc(nfound + 1, sizeof(*c->earlier));
	if (!c->attached || !c->earlier)
		return;
	memcpy(c->attached, pids, n * sizeof(*pids));
	c->nattached = n;
	for (c->n = 0; c->n < nfound; c->n++)
		c->earlier[c->n] =
			(struct earlier_child){ found[c->n], procfs_process_cpu_ns(found[c->n]) };
}

/* A process with less CPU time than at the start has the pid of another. */
static void add_earlier(struct attached_children *c)
{
	for (size_t i = 0; i < c->n; i++) {
		__u64 now_ns = procfs_process_cpu_ns(c->earlier[i].pid);

		if (now_ns <= c->earlier[i].cpu_ns)
			continue;
		c->nearlier++;
		c->earlier_ns += now_ns - c->earlier[i].cpu_ns;
	}
}

/* Adds those that are not earlier ones, nor below one. */
static void add_later(struct attached_children *c)
{
	__cleanup(freep) pid_t *roots = calloc(c->n + 1, sizeof(*roots));
	__cleanup(freep) pid_t *all = NULL, *below = NULL;
	size_t nall, nbelow;

	if (!roots || descendants(&all, &nall, c->attached, c->nattached))
		return;
	for (size_t i = 0; i < c->n; i++)
		roots[i] = c->earlier[i].pid;
	if (descendants(&below, &nbelow, roots, c->n))
		return;
	for (size_t i = 0; i < nall; i++) {
		if (!descendants_has(roots, c->n, all[i]) &&
		    !descendants_has(below, nbelow, all[i]))
			c->later_ns += procfs_cpu_ns(all[i]);
	}
}

void attached_children_end(struct attached_children *c)
{
	if (!c->nattached)
		return;
	add_earlier(c);
	add_later(c);
}

void attached_children_fini(struct attached_children *c)
{
	free(c->attached);
	free(c->earlier);
	*c = (struct attached_children){ 0 };
}
