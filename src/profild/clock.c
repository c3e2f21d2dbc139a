/* clock.c - what makes the tick program run: perf events at each rate in use, on each CPU */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "core/log.h"
#include "core/scope.h"
#include "store.h"

/* A rate in use. */
struct clock {
	struct clock *next;
	uint64_t period_ns;
	unsigned int users;
	int ncpus;
	int link[]; /* -1: that CPU is not online */
};

struct clocks {
	const struct bpf_program *tick;
	struct store *store;
	struct clock *first;
};

/* Per CPU, not per task: a per-task event makes a program that switches or forks crawl. */
static int event_open(int cpu, uint64_t period_ns)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.exclude_idle = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static const char *link_name(uint64_t period_ns, int cpu, char name[48])
{
	snprintf(name, 48, "tick-%llu-%d", (unsigned long long)period_ns, cpu);
	return name;
}

/* A link as a plain descriptor: so it goes into the store, and comes out again. */
static int link_open(struct clocks *c, uint64_t period_ns, int cpu)
{
	__cleanup(closep) int event = -1;
	char name[48];
	int link = store_take(c->store, link_name(period_ns, cpu, name)), err;

	if (link >= 0)
		return link;
	event = event_open(cpu, period_ns);
	if (event < 0)
		return event;
	link = bpf_link_create(bpf_program__fd(c->tick), event, BPF_PERF_EVENT, NULL);
	if (link < 0)
		return -errno;
	err = store_put(c->store, name, link);
	if (err)
		log_warning("cannot store %s: %s; after a restart its ticks will be missing", name,
			    strerror(-err));
	return link;
}

static struct clock *clock_close(struct clock *c)
{
	for (int cpu = 0; c && cpu < c->ncpus; cpu++)
		closep(&c->link[cpu]);
	free(c);
	return NULL;
}

static int clock_open(struct clock **out, struct clocks *clocks, uint64_t period_ns)
{
	int ncpus = libbpf_num_possible_cpus(), err = 0;
	struct clock *c;

	if (ncpus < 0)
		return ncpus;
	c = calloc(1, sizeof(*c) + (size_t)ncpus * sizeof(c->link[0]));
	if (!c)
		return -ENOMEM;
	c->period_ns = period_ns;
	c->ncpus = ncpus;
	for (int cpu = 0; cpu < ncpus; cpu++) {
		c->link[cpu] = err ? -1 : link_open(clocks, period_ns, cpu);
		if (c->link[cpu] < 0 && c->link[cpu] != -ENODEV)
			err = err ? err : c->link[cpu];
	}
	if (err) {
		clock_close(c);
		return err;
	}
	*out = c;
	return 0;
}

int clocks_open(struct clocks **out, const struct bpf_program *tick, struct store *store)
{
	struct clocks *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->tick = tick;
	c->store = store;
	*out = c;
	return 0;
}

struct clocks *clocks_close(struct clocks *c)
{
	while (c && c->first) {
		struct clock *clock = c->first;

		c->first = clock->next;
		clock_close(clock);
	}
	free(c);
	return NULL;
}

/* Where the clock of @period_ns is linked, or would be. */
static struct clock **place_of(struct clocks *c, uint64_t period_ns)
{
	struct clock **place = &c->first;

	while (*place && (*place)->period_ns != period_ns)
		place = &(*place)->next;
	return place;
}

int clocks_use(struct clocks *c, uint64_t period_ns)
{
	struct clock **place = place_of(c, period_ns);

	if (!*place) {
		int err = clock_open(place, c, period_ns);

		if (err)
			return err;
	}
	(*place)->users++;
	return 0;
}

void clocks_unuse(struct clocks *c, uint64_t period_ns)
{
	struct clock **place = place_of(c, period_ns), *clock = *place;

	if (!clock || --clock->users)
		return;
	*place = clock->next;
	for (int cpu = 0; cpu < clock->ncpus; cpu++) {
		char name[48];

		if (clock->link[cpu] >= 0)
			store_drop(c->store, link_name(period_ns, cpu, name));
	}
	clock_close(clock);
}
