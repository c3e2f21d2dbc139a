/* clock.c - what makes the tick program run: perf events at each rate in use, on each CPU */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "core/scope.h"

/* A rate in use. */
struct clock {
	struct clock *next;
	uint64_t period_ns;
	unsigned int users;
	int ncpus;
	struct bpf_link *link[];
};

struct clocks {
	const struct bpf_program *tick;
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

static struct clock *clock_close(struct clock *c)
{
	for (int cpu = 0; c && cpu < c->ncpus; cpu++)
		bpf_link__destroy(c->link[cpu]);
	free(c);
	return NULL;
}

static int clock_open(struct clock **out, const struct bpf_program *tick, uint64_t period_ns)
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
	for (int cpu = 0; !err && cpu < ncpus; cpu++) {
		__cleanup(closep) int fd = event_open(cpu, period_ns);

		if (fd == -ENODEV)
			continue; /* not online */
		c->link[cpu] = fd < 0 ? NULL : bpf_program__attach_perf_event(tick, fd);
		if (c->link[cpu])
			fd = -1; /* the link's now */
		else
			err = fd < 0 ? fd : -errno;
	}
	if (err) {
		clock_close(c);
		return err;
	}
	*out = c;
	return 0;
}

int clocks_open(struct clocks **out, const struct bpf_program *tick)
{
	struct clocks *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->tick = tick;
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
		int err = clock_open(place, c->tick, period_ns);

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
	clock_close(clock);
}
