/* event_links.c - links from observed events (other than CPU time) to the BPF programs */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/branch_records.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "core/observe_maps.h"
#include "core/shared_maps.h"
#include "cpu_hotplug.h"
#include "event_links.h"
#include "late_programs.h"

/*
 * Events are per CPU, not per task: a per-task event makes a program that switches or forks often
 * several times slower. So while one process's events are observed, those of all processes cost
 * something: the kernel counts each, and at a sample the program looks for a target. An
 * unprivileged client's event has a limit of samples a second (limit_hz), to which the kernel
 * adapts the period; a sample then stands for all events since the one before. So none is lost, and
 * other processes pay only for the counting.
 *
 * A tracepoint has one link for all CPUs, and the program runs at each event. So has off-CPU time,
 * which is no perf event but programs of its own, at each switch and wake-up of threads.
 */
#define SLOTS (PROFIL_TARGET_EVENTS / PROFIL_TARGET_EVENT)

/* Under load the kernel lowers the highest frequency that it accepts; retries stop here. */
#define FREQUENCY_LEAST 100

struct slot {
	struct event_choice choice;
	uint32_t generation; /* of its links, whose events count from 0 */
	unsigned int users;
	struct cpu_link {
		int event; /* -1: the CPU is not online */
		int link;
	} * cpu;
};

struct event_links {
	struct late_programs *programs;
	sd_event *event;
	struct hotplug *hotplug; /* while one is in use */
	int ncpus;
	struct profil_tables *tables;
	struct slot slot[SLOTS];
};

static uint32_t flags_of(const struct event_links *e, const struct slot *s)
{
	return (uint32_t)(1 + (s - e->slot)) * PROFIL_TARGET_EVENT;
}

/* --- what can be observed --------------------------------------------------------------------- */

#define TRACE_FN 1 /* linux/trace_events.h: the function tracer's event */

static bool is_software(uint64_t config)
{
	switch (config) {
	case PERF_COUNT_SW_PAGE_FAULTS:
	case PERF_COUNT_SW_PAGE_FAULTS_MIN:
	case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
	case PERF_COUNT_SW_CONTEXT_SWITCHES:
	case PERF_COUNT_SW_CPU_MIGRATIONS:
	case PERF_COUNT_SW_ALIGNMENT_FAULTS:
	case PERF_COUNT_SW_EMULATION_FAULTS:
		return true;
	}
	return false;
}

int event_choice_check(const struct event_choice *c, bool privileged)
{
	if (!c->period != !!c->frequency || c->period > UINT32_MAX)
		return -EINVAL;
	switch (c->type) {
	case PERF_TYPE_SOFTWARE:
		return is_software(c->config) ? 0 : -EOPNOTSUPP;
	case PERF_TYPE_HARDWARE:
		return c->config < PERF_COUNT_HW_MAX ? 0 : -EOPNOTSUPP;
	case PERF_TYPE_TRACEPOINT:
	case PROFIL_EVENT_UPROBE:
		if (!privileged)
			return -EACCES;
		return c->config == TRACE_FN || c->frequency ? -EOPNOTSUPP : 0;
	case PROFIL_EVENT_BRANCHES:
		return c->config || !c->frequency ? -EINVAL : 0;
	case PROFIL_EVENT_OFF_CPU:
		return c->config || c->frequency || c->period < PROFIL_OFF_CPU_LEAST_NS ? -EINVAL
											: 0;
	}
	return -EOPNOTSUPP;
}

/* --- links ------------------------------------------------------------------------------------ */

static int perf_event(const struct event_choice *c, uint32_t frequency, int cpu)
{
	struct perf_event_attr attr = {
		.type = c->type == PROFIL_EVENT_UPROBE ? PERF_TYPE_TRACEPOINT : c->type,
		.size = sizeof(attr),
		.config = c->config,
		.sample_period = c->period,
	};
	int fd;

	if (c->type == PROFIL_EVENT_BRANCHES)
		branch_records_ask(&attr);
	if (frequency) {
		attr.freq = 1;
		attr.sample_freq = frequency;
	}
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int event_open(const struct event_choice *c, int cpu)
{
	uint32_t hz = c->frequency ? c->frequency : c->limit_hz;
	int fd = perf_event(c, hz, cpu);

	while (fd == -EINVAL && hz > FREQUENCY_LEAST)
		fd = perf_event(c, hz /= 2, cpu);
	return fd;
}

/* True if one link is for all CPUs. */
static bool is_one_link(uint32_t type)
{
	return type == PERF_TYPE_TRACEPOINT || type == PROFIL_EVENT_UPROBE ||
	       type == PROFIL_EVENT_OFF_CPU;
}

static uint64_t cookie_of(const struct event_links *e, const struct slot *s)
{
	uint64_t weight = s->choice.frequency  ? PROFIL_COOKIE_FREQUENCY
			  : s->choice.limit_hz ? PROFIL_COOKIE_ADAPTED
					       : 0;

	return flags_of(e, s) | weight | s->generation * PROFIL_COOKIE_GENERATION;
}

static int program_of(const struct event_links *e, const struct event_choice *c)
{
	return late_programs_fd(e->programs,
				c->type == PERF_TYPE_TRACEPOINT	   ? LATE_PROGRAM_TRACEPOINT
				: c->type == PROFIL_EVENT_UPROBE   ? LATE_PROGRAM_UPROBE
				: c->type == PROFIL_EVENT_BRANCHES ? LATE_PROGRAM_BRANCHES
								   : LATE_PROGRAM_PERF);
}

static int link_one(const struct event_links *e, struct slot *s, int cpu)
{
	__u64 cookie = cookie_of(e, s);
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = cookie);
	int program = program_of(e, &s->choice);
	__cleanup(closep) int event = event_open(&s->choice, cpu);
	int link;

	if (event < 0)
		return event;
	if (program < 0)
		return program;
	link = bpf_link_create(program, event, BPF_PERF_EVENT, &opts);
	if (link < 0)
		return -errno;
	s->cpu[cpu] = (struct cpu_link){ steal_fd(event), link };
	return 0;
}

static void unlink_one(struct cpu_link *l)
{
	closep(&l->link);
	closep(&l->event);
	*l = (struct cpu_link){ -1, -1 };
}

/* Reopens the CPU's events, which stay dead after the CPU has been offline. */
static void on_cpu_online(void *arg, int cpu)
{
	struct event_links *e = arg;

	for (struct slot *s = e->slot; cpu < e->ncpus && s < e->slot + SLOTS; s++) {
		int err;

		if (!s->users || is_one_link(s->choice.type))
			continue;
		unlink_one(&s->cpu[cpu]);
		s->generation++;
		err = link_one(e, s, cpu);
		if (err && err != -ENODEV)
			log_warning("cannot open a perf event on CPU %d, which came online: %s "
				    "(events on it are not counted)",
				    cpu, strerror(-err));
	}
}

static void slot_close(struct event_links *e, struct slot *s)
{
	if (s->choice.type == PROFIL_EVENT_OFF_CPU)
		late_programs_use_links(e->programs, false); /* they stay for a second */
	for (int cpu = 0; s->cpu && cpu < e->ncpus; cpu++)
		unlink_one(&s->cpu[cpu]);
	free(s->cpu);
	s->cpu = NULL;
}

/* Maps the errors of perf_event_open() for an event that does not exist here. */
static int reason(int err)
{
	return err == -ENOENT || err == -EINVAL || err == -ENODEV ? -EOPNOTSUPP : err;
}

static int slot_open(struct event_links *e, struct slot *s, const struct event_choice *c)
{
	int linked = 0, err = 0;

	s->choice = *c;
	s->generation++;
	if (c->type == PROFIL_EVENT_OFF_CPU) {
		late_programs_use_links(e->programs, true); /* event_links_prepare() made them */
		return 0;
	}
	s->cpu = calloc((size_t)e->ncpus, sizeof(*s->cpu));
	if (!s->cpu)
		return -ENOMEM;
	for (int cpu = 0; cpu < e->ncpus; cpu++)
		s->cpu[cpu] = (struct cpu_link){ -1, -1 };
	for (int cpu = 0; cpu < e->ncpus; cpu++) {
		err = link_one(e, s, cpu);
		if (err && err != -ENODEV)
			break;
		linked += !err;
		err = 0;
		if (linked && is_one_link(s->choice.type))
			break;
	}
	if (!err && !linked)
		err = -ENODEV;
	if (err)
		slot_close(e, s);
	return reason(err);
}

/* --- users of links --------------------------------------------------------------------------- */

/* The slot of @c, or a free one; NULL: none is free. */
static struct slot *slot_for(struct event_links *e, const struct event_choice *c)
{
	struct slot *spare = NULL;

	for (struct slot *s = e->slot; s < e->slot + SLOTS; s++) {
		if (s->users && !memcmp(&s->choice, c, sizeof(*c)))
			return s;
		if (!s->users && !spare)
			spare = s;
	}
	return spare;
}

/* @c without what does not affect the links: where there is one link, targets thin the events. */
static struct event_choice key_of(const struct event_choice *c)
{
	struct event_choice key = *c;

	if (is_one_link(key.type) || key.frequency)
		key.limit_hz = 0;
	if (is_one_link(key.type) || key.limit_hz)
		key.period = 1;
	return key;
}

int event_links_prepare(struct event_links *e, const struct event_choice *c)
{
	int program;

	if (c->type == PROFIL_EVENT_OFF_CPU)
		return late_programs_link(e->programs);
	program = program_of(e, c);
	return program < 0 ? program : 0;
}

int event_links_use(struct event_links *e, const struct event_choice *c, uint32_t *flags)
{
	struct event_choice key = key_of(c);
	struct slot *s = slot_for(e, &key);
	int err;

	if (!s)
		return -EAGAIN;
	if (!s->users) {
		e->tables->events++; /* before the first event */
		err = slot_open(e, s, &key);
		if (err) {
			e->tables->events--;
			return err;
		}
		if (e->tables->events == 1)
			hotplug_open(&e->hotplug, e->event, on_cpu_online, e);
	}
	s->users++;
	*flags = (*flags & ~(uint32_t)PROFIL_TARGET_CLOCKS) | flags_of(e, s);
	return 0;
}

void event_links_unuse(struct event_links *e, uint32_t flags)
{
	struct slot *s = &e->slot[(flags & PROFIL_TARGET_EVENTS) / PROFIL_TARGET_EVENT - 1];

	if (--s->users)
		return;
	slot_close(e, s);
	if (!--e->tables->events) /* after the last event */
		e->hotplug = hotplug_close(e->hotplug);
}

int event_links_open(struct event_links **out, struct late_programs *programs,
		     struct profil_tables *tables, sd_event *event)
{
	struct event_links *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->programs = programs;
	e->tables = tables;
	tables->events = 0; /* an earlier daemon's links ended with it */
	e->event = event;
	e->ncpus = libbpf_num_possible_cpus();
	if (e->ncpus < 0) {
		int err = e->ncpus;

		free(e);
		return err;
	}
	*out = e;
	return 0;
}

struct event_links *event_links_close(struct event_links *e)
{
	if (!e)
		return NULL;
	for (struct slot *s = e->slot; s < e->slot + SLOTS; s++)
		slot_close(e, s);
	hotplug_close(e->hotplug);
	free(e);
	return NULL;
}
