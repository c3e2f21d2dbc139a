/* quiet_threads.c - the time of threads that had no CPU during a whole profile of waits */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/grow.h"
#include "symbols/proc/procfs.h"

#include "quiet_threads.h"

static void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* Reads how often a thread has got a CPU. Returns false if it has ended. */
static bool turns_of(__u64 *turns, const struct quiet_thread *t)
{
	char name[64], text[96];
	unsigned long long n;

	snprintf(name, sizeof(name), "task/%d/schedstat", (int)t->tid);
	if (!procfs_read(t->pid, name, text, sizeof(text)) || sscanf(text, "%*u %*u %llu", &n) != 1)
		return false;
	*turns = n;
	return true;
}

/* Says whether the thread sleeps, and does not only wait for a CPU. */
static bool is_asleep(const struct quiet_thread *t)
{
	char name[64], text[512];
	const char *end;

	snprintf(name, sizeof(name), "task/%d/stat", (int)t->tid);
	if (!procfs_read(t->pid, name, text, sizeof(text)))
		return false;
	end = strrchr(text, ')'); /* the comm can have any characters */
	return end && end[1] == ' ' && strchr("SDTt", end[2]) && end[2];
}

void quiet_threads_note(struct quiet_threads *q, pid_t pid)
{
	char path[64];
	const struct dirent *entry;
	__cleanup(closedirp) DIR *dir = NULL;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		struct quiet_thread t = { .pid = pid, .tid = atoi(entry->d_name) }, *more;

		if (t.tid <= 0 || !turns_of(&t.turns, &t))
			continue;
		more = grow(q->thread, q->n, sizeof(*more));
		if (!more)
			break; /* they are missing from the profile */
		q->thread = more;
		q->thread[q->n++] = t;
	}
	q->since_ns = now_ns();
}

int quiet_threads_read(const struct quiet_threads *q, struct profile *p, __u64 now_ns)
{
	__u64 samples = 0, each;

	if (!p->tick_ns || now_ns <= q->since_ns)
		return 0;
	each = (now_ns - q->since_ns + p->tick_ns / 2) / p->tick_ns;
	for (size_t i = 0; i < q->n; i++) {
		__u64 turns;

		if (turns_of(&turns, &q->thread[i]) && turns == q->thread[i].turns &&
		    is_asleep(&q->thread[i]))
			samples += each;
	}
	p->total += samples;
	p->unmatched += samples;
	return samples ? call_tree_count(&p->calls, call_root(CALL_UNREADABLE, CALL_ASLEEP),
					 samples)
		       : 0;
}

void quiet_threads_fini(struct quiet_threads *q)
{
	free(q->thread);
	*q = (struct quiet_threads){ 0 };
}
