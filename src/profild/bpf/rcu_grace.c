/* rcu_grace.c - waits for an RCU grace period */
#include <bpf/bpf.h>
#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "rcu_grace.h"

/* The wait if the map operation fails; a program runs for some microseconds. */
#define UNKNOWN_US 500000

int rcu_grace_open(struct rcu_grace *g)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);

	*g = (struct rcu_grace){ -1, -1 };
	g->inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "profil_barrier", 4, 4, 1, NULL);
	if (g->inner < 0)
		return -errno;
	opts.inner_map_fd = (__u32)g->inner;
	g->outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "profil_barrier", 4, 4, 1, &opts);
	return g->outer < 0 ? -errno : 0;
}

void rcu_grace_close(struct rcu_grace *g)
{
	closep(&g->inner);
	closep(&g->outer);
}

void rcu_grace_wait(const struct rcu_grace *g)
{
	__u32 key = 0;

	if (bpf_map_update_elem(g->outer, &key, &g->inner, BPF_ANY) < 0)
		usleep(UNKNOWN_US);
}
