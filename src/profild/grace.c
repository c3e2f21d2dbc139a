/* grace.c - waits in the background until every BPF program that runs now has ended */
#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/scope.h"
#include "grace.h"

/* Where the kernel does not wait for us: a program runs for some microseconds. */
#define UNKNOWN_US 500000

/*
 * The kernel waits for a grace period whenever an array of maps changes; membarrier(2) would too,
 * but not on a machine with nohz_full CPUs. So a map goes in and out of an array of its own.
 */
struct grace {
	int asked;
	int passed;
	int inner;
	int outer;
	struct grace_drops drops; /* the thread's, between asked and passed */
	bool running;
	pthread_t thread;
	sd_event_source *source;
	void (*fn)(void *arg);
	void *arg;
};

static void *wait_for_grace(void *arg)
{
	struct grace *g = arg;
	uint64_t n = 0;
	__u32 key = 0;

	while (TEMP_FAILURE_RETRY(read(g->asked, &n, sizeof(n))) == sizeof(n) && n == 1) {
		for (uint32_t i = 0; i < g->drops.n; i++)
			bpf_map_delete_elem(g->drops.map, &g->drops.key[i]);
		if (bpf_map_update_elem(g->outer, &key, &g->inner, BPF_ANY) < 0)
			usleep(UNKNOWN_US);
		if (TEMP_FAILURE_RETRY(write(g->passed, &n, sizeof(n))) != sizeof(n))
			break;
	}
	return NULL;
}

static int on_passed(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct grace *g = userdata;
	uint64_t n;

	(void)source;
	(void)revents;
	if (read(fd, &n, sizeof(n)) == sizeof(n))
		g->fn(g->arg);
	return 0;
}

static int open_maps(struct grace *g)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);

	g->inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "profil_grace", 4, 4, 1, NULL);
	if (g->inner < 0)
		return -errno;
	opts.inner_map_fd = (__u32)g->inner;
	g->outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "profil_grace", 4, 4, 1, &opts);
	return g->outer < 0 ? -errno : 0;
}

int grace_open(struct grace **out, sd_event *event, void (*passed)(void *arg), void *arg)
{
	struct grace *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return -ENOMEM;
	g->fn = passed;
	g->arg = arg;
	g->inner = g->outer = -1;
	g->asked = eventfd(0, EFD_CLOEXEC);
	g->passed = eventfd(0, EFD_CLOEXEC);
	err = g->asked < 0 || g->passed < 0 ? -errno : open_maps(g);
	if (!err)
		err = sd_event_add_io(event, &g->source, g->passed, EPOLLIN, on_passed, g);
	if (err >= 0)
		err = -pthread_create(&g->thread, NULL, wait_for_grace, g);
	if (err < 0) {
		grace_close(g);
		return err;
	}
	g->running = true;
	*out = g;
	return 0;
}

struct grace *grace_close(struct grace *g)
{
	uint64_t enough = 2;

	if (!g)
		return NULL;
	if (g->running &&
	    TEMP_FAILURE_RETRY(write(g->asked, &enough, sizeof(enough))) == sizeof(enough))
		pthread_join(g->thread, NULL);
	sd_event_source_unref(g->source);
	closep(&g->asked);
	closep(&g->passed);
	closep(&g->inner);
	closep(&g->outer);
	free(g);
	return NULL;
}

int grace_ask(struct grace *g, const struct grace_drops *drops)
{
	uint64_t one = 1;

	g->drops = *drops;
	return TEMP_FAILURE_RETRY(write(g->asked, &one, sizeof(one))) < 0 ? -errno : 0;
}
