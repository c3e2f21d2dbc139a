/* perf_event.c - perf events as a clock: the kernel's timers, or hardware cycles */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "source.h"
#include "profild/config.h"
#include "base/cleanup.h"
#include "profild/skeleton.h"

struct profil_clock *clock_shared(const struct profil_bpf *skel)
{
	return &skel->bss->tables.clock;
}

static uint64_t hz_of(uint64_t period_ns)
{
	return (NSEC_PER_SEC + period_ns / 2) / period_ns;
}

/*
 * Per CPU, because a per-task event makes a program that switches or forks often several times
 * slower (4.6 times with perf record -p).
 */
static int event_open(bool cycles, uint64_t period_ns, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.exclude_idle = 1,
	};
	int fd;

	if (cycles) {
		attr.type = PERF_TYPE_HARDWARE;
		attr.config = PERF_COUNT_HW_CPU_CYCLES;
		attr.freq = 1; /* the kernel adapts the number of cycles to the frequency */
		attr.sample_freq = hz_of(period_ns);
	}
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int cpu_event_open(struct cpu_event *e, int program, bool cycles, uint64_t period_ns, int cpu)
{
	__cleanup(closep) int event = event_open(cycles, period_ns, cpu);
	int link;

	*e = (struct cpu_event){ -1, -1 };
	if (event < 0)
		return event;
	link = bpf_link_create(program, event, BPF_PERF_EVENT, NULL);
	if (link < 0)
		return -errno;
	*e = (struct cpu_event){ steal_fd(event), link };
	return 0;
}

void cpu_event_close(struct cpu_event *e)
{
	closep(&e->link);
	closep(&e->event);
	*e = (struct cpu_event){ -1, -1 };
}

int cpu_event_set_period(const struct cpu_event *e, bool cycles, uint64_t period_ns)
{
	__u64 value = cycles ? hz_of(period_ns) : period_ns;

	if (e->event < 0)
		return 0;
	return ioctl(e->event, PERF_EVENT_IOC_PERIOD, &value) < 0 ? -errno : 0;
}

int cpu_event_check_cycles(void)
{
	__cleanup(closep) int event = event_open(true, NSEC_PER_SEC, 0);

	return event < 0 ? event : 0;
}
