/* descendants.c - the processes below others */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"

#include "descendants.h"
#include "symbols/proc/procfs.h"

bool descendants_has(const pid_t *pids, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++) {
		if (pids[i] == pid)
			return true;
	}
	return false;
}

struct kin {
	pid_t pid; /* 0: taken, or none */
	pid_t parent;
};

/* Moves those in @kin whose parent is in @pids or in @out to @out. Returns their number. */
static size_t take_generation(pid_t *out, size_t *nout, struct kin *kin, size_t nkin,
			      const pid_t *pids, size_t n)
{
	size_t before = *nout;

	for (struct kin *k = kin; k < kin + nkin; k++) {
		if (!k->pid || (!descendants_has(pids, n, k->parent) &&
				!descendants_has(out, *nout, k->parent)))
			continue;
		out[(*nout)++] = k->pid;
		k->pid = 0;
	}
	return *nout - before;
}

int descendants(pid_t **out, size_t *nout, const pid_t *pids, size_t n)
{
	struct procfs_select everything = { 0 };
	__cleanup(freep) struct kin *kin = NULL;
	__cleanup(freep) pid_t *all = NULL, *found = NULL;
	size_t nall;
	int err = procfs_find(&all, &nall, &everything);

	*nout = 0;
	if (err < 0)
		return err;
	kin = calloc(nall + 1, sizeof(*kin));
	found = calloc(nall + 1, sizeof(*found));
	if (!kin || !found)
		return -ENOMEM;
	for (size_t i = 0; i < nall; i++) {
		if (!descendants_has(pids, n, all[i]))
			kin[i] = (struct kin){ all[i], procfs_parent(all[i]) };
	}
	while (take_generation(found, nout, kin, nall, pids, n))
		;
	*out = steal(found);
	return 0;
}
