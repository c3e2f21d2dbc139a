/* clock_event.c - perf events as clocks: the kernel's timers, or hardware cycles */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock_link.h"
#include "config.h"
#include "core/scope.h"
#include "skeleton.h"

/* Per CPU, not per task: a per-task event makes a program that switches or forks crawl. */
static int event_open(struct perf_event_attr *attr, int cpu)
{
	int fd;

	attr->size = sizeof(*attr);
	attr->exclude_idle = 1;
	fd = (int)syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int cycles_open(uint64_t period_ns, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.freq = 1, /* the kernel finds out how many cycles that is, as they come and go */
		.sample_freq = (NSEC_PER_SEC + period_ns / 2) / period_ns,
	};

	return event_open(&attr, cpu);
}

static int timer_open(uint64_t period_ns, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
	};

	return event_open(&attr, cpu);
}

int clock_event_link(const struct profil_bpf *skel, bool cycles, uint64_t period_ns, int cpu)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .perf_event.bpf_cookie = (__u64)skel->rodata->bucket_seed << 32 | period_ns);
	__cleanup(closep) int event =
		cycles ? cycles_open(period_ns, cpu) : timer_open(period_ns, cpu);
	int link;

	if (event < 0)
		return event;
	link = bpf_link_create(bpf_program__fd(skel->progs.tick_event), event, BPF_PERF_EVENT,
			       &opts);
	return link < 0 ? -errno : link;
}

int clock_cycles_check(void)
{
	__cleanup(closep) int event = cycles_open(NSEC_PER_SEC, 0);

	return event < 0 ? event : 0;
}
