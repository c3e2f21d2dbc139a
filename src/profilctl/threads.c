/* threads.c - the ticks of each thread */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procfs.h"
#include "threads.h"

/* Those that tick now are among the last ones. */
static struct thread *find(const struct profile *p, pid_t pid, pid_t tid)
{
	for (size_t i = p->nthreads; i-- > 0;) {
		if (p->threads[i].tid == tid && p->threads[i].pid == pid)
			return &p->threads[i];
	}
	return NULL;
}

static char *name_of(pid_t tid)
{
	char name[64];

	return strdup(procfs_comm(tid, name, sizeof(name)));
}

int threads_tick(struct profile *p, pid_t pid, pid_t tid)
{
	struct thread t = { .pid = pid, .tid = tid, .samples = 1 }, *known = find(p, pid, tid);

	if (known) {
		known->samples++;
		return 0;
	}
	t.name = name_of(tid);
	return t.name ? profile_add_thread(p, &t) : -ENOMEM;
}

int threads_exec(struct profile *p, pid_t pid)
{
	struct thread *t = find(p, pid, pid);
	char *name = t ? name_of(pid) : NULL;

	if (!t)
		return 0;
	if (!name)
		return -ENOMEM;
	free(t->name);
	t->name = name;
	return 0;
}
