/* rcu_barrier.c - waits in the background for an RCU grace period */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/jobs.h"
#include "base/cleanup.h"
#include "rcu_barrier.h"

/* The wait if the map operation fails; a program runs for some microseconds. */
#define UNKNOWN_US 500000

/*
 * The kernel waits for a grace period whenever a map of maps is changed, so the barrier is an
 * update of a private map of maps. membarrier(2) waits as well, but fails on a machine with
 * nohz_full CPUs.
 */
struct rcu_barrier {
	struct job job;
	struct jobs *jobs;
	int inner;
	int outer;
	struct rcu_barrier_drops drops;
	void (*fn)(void *arg);
	void *arg;
};

static void run(struct job *job)
{
	struct rcu_barrier *b = (struct rcu_barrier *)job;
	__u32 key = 0;

	for (uint32_t i = 0; i < b->drops.n; i++)
		bpf_map_delete_elem(b->drops.map[i], &b->drops.key[i]);
	if (bpf_map_update_elem(b->outer, &key, &b->inner, BPF_ANY) < 0)
		usleep(UNKNOWN_US);
}

static void done(struct job *job)
{
	struct rcu_barrier *b = (struct rcu_barrier *)job;

	b->fn(b->arg);
}

static int open_maps(struct rcu_barrier *b)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);

	b->inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "profil_barrier", 4, 4, 1, NULL);
	if (b->inner < 0)
		return -errno;
	opts.inner_map_fd = (__u32)b->inner;
	b->outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "profil_barrier", 4, 4, 1, &opts);
	return b->outer < 0 ? -errno : 0;
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
	b->inner = b->outer = -1;
	err = open_maps(b) ?: jobs_open(&b->jobs, event, 1);
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
	closep(&b->inner);
	closep(&b->outer);
	free(b);
	return NULL;
}

void rcu_barrier_ask(struct rcu_barrier *b, const struct rcu_barrier_drops *drops)
{
	b->drops = *drops;
	jobs_submit(b->jobs, &b->job);
}
