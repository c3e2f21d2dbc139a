/* earlier_children.c - CPU time of children that attached processes had before */
#include <stdlib.h>

#include "base/cleanup.h"

#include "earlier_children.h"
#include "symbols/proc/procfs.h"

static bool is_in(pid_t pid, const pid_t *pids, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (pids[i] == pid)
			return true;
	}
	return false;
}

static bool is_child(const struct earlier_children *e, pid_t pid)
{
	for (size_t i = 0; i < e->n; i++) {
		if (e->child[i].pid == pid)
			return true;
	}
	return false;
}

struct kin {
	pid_t pid; /* 0: taken */
	pid_t parent;
};

/* Takes the processes in @all whose parent is in @pids or was taken. Returns their number. */
static size_t take_generation(struct earlier_children *e, struct kin *all, size_t nall,
			      const pid_t *pids, size_t n)
{
	size_t before = e->n;

	for (struct kin *k = all; k < all + nall; k++) {
		if (!k->pid || (!is_in(k->parent, pids, n) && !is_child(e, k->parent)))
			continue;
		e->child[e->n++] = (struct earlier_child){ k->pid, procfs_process_cpu_ns(k->pid) };
		k->pid = 0;
	}
	return e->n - before;
}

void earlier_children_begin(struct earlier_children *e, const pid_t *pids, size_t n)
{
	struct procfs_select everything = { 0 };
	__cleanup(freep) struct kin *kin = NULL;
	__cleanup(freep) pid_t *all = NULL;
	size_t nall;

	if (procfs_find(&all, &nall, &everything) < 0)
		return;
	kin = calloc(nall + 1, sizeof(*kin));
	e->child = calloc(nall + 1, sizeof(*e->child));
	for (size_t i = 0; kin && i < nall; i++) {
		if (!is_in(all[i], pids, n))
			kin[i] = (struct kin){ all[i], procfs_parent(all[i]) };
	}
	while (kin && e->child && take_generation(e, kin, nall, pids, n))
		;
}

/* A process with less CPU time than at the start has the pid of another. */
void earlier_children_end(struct earlier_children *e)
{
	for (size_t i = 0; i < e->n; i++) {
		__u64 now_ns = procfs_process_cpu_ns(e->child[i].pid);

		if (now_ns <= e->child[i].cpu_ns)
			continue;
		e->nused++;
		e->used_ns += now_ns - e->child[i].cpu_ns;
	}
}

void earlier_children_fini(struct earlier_children *e)
{
	free(e->child);
	*e = (struct earlier_children){ 0 };
}
