/* clock.c - the perf events that tick at one rate, one on each CPU */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "core/scope.h"

struct clock {
	int ncpus;
	struct bpf_link *link[];
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

int clock_open(struct clock **out, const struct bpf_program *prog, uint64_t period_ns)
{
	int ncpus = libbpf_num_possible_cpus(), err = 0;
	struct clock *c;

	if (ncpus < 0)
		return ncpus;
	c = calloc(1, sizeof(*c) + (size_t)ncpus * sizeof(c->link[0]));
	if (!c)
		return -ENOMEM;
	c->ncpus = ncpus;
	for (int cpu = 0; !err && cpu < ncpus; cpu++) {
		__cleanup(closep) int fd = event_open(cpu, period_ns);

		if (fd == -ENODEV)
			continue; /* not online */
		c->link[cpu] = fd < 0 ? NULL : bpf_program__attach_perf_event(prog, fd);
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

struct clock *clock_close(struct clock *c)
{
	for (int cpu = 0; c && cpu < c->ncpus; cpu++)
		bpf_link__destroy(c->link[cpu]);
	free(c);
	return NULL;
}
