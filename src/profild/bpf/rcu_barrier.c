/* rcu_barrier.c - waits in the background for an RCU grace period */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/jobs.h"
#include "base/cleanup.h"
#include "rcu_barrier.h"
#include "rcu_grace.h"

struct rcu_barrier {
	struct job job;
	struct jobs *jobs;
	struct rcu_grace grace;
	struct rcu_barrier_drops drops;
	void (*fn)(void *arg);
	void *arg;
};

static void run(struct job *job)
{
	struct rcu_barrier *b = (struct rcu_barrier *)job;

	for (uint32_t i = 0; i < b->drops.n; i++)
		bpf_map_delete_elem(b->drops.map[i], &b->drops.key[i]);
	rcu_grace_wait(&b->grace);
}

static void done(struct job *job)
{
	struct rcu_barrier *b = (struct rcu_barrier *)job;

	b->fn(b->arg);
}

int rcu_barrier_open(struct rcu_barrier **out, sd_event *event, void (*passed)(void *arg),
		     void *arg)
{
	struct rcu_barrier *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	b->job = (struct job){ .run = run, .done = done };
	b->fn = passed;
	b->arg = arg;
	err = rcu_grace_open(&b->grace) ?: jobs_open(&b->jobs, event, 1);
	if (err) {
		rcu_barrier_close(b);
		return err;
	}
	*out = b;
	return 0;
}

struct rcu_barrier *rcu_barrier_close(struct rcu_barrier *b)
{
	if (!b)
		return NULL;
	jobs_close(b->jobs);
	rcu_grace_close(&b->grace);
	free(b);
	return NULL;
}

void rcu_barrier_ask(struct rcu_barrier *b, const struct rcu_barrier_drops *drops)
{
	b->drops = *drops;
	jobs_submit(b->jobs, &b->job);
}
