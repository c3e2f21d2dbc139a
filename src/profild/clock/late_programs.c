/* late_programs.c - the BPF programs of places and events, loaded when one is first needed */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"
#include "late_programs.h"
#include "linger.h"
#include "base/jobs.h"
#include "profild/skeleton.h"

/*
 * The verifier takes 80 ms or more for each program that counts places. Profiles that processes
 * start themselves need none, so the daemon starts with the timer tick's without places. When a
 * client first asks for places, for a rate above the tick's, or for events, a thread opens the
 * object a second time, gives it the maps of the first, and loads the programs of one set. That of
 * the tick is put into the map tick_places, from which the one that is attached calls it.
 *
 * The links of the programs of off-CPU time are made by a thread, too: after another was closed,
 * the kernel first waits for an RCU grace period.
 */
enum set { SET_TICK, SET_PERF, SET_OTHERS, SETS };
#define LINKS 5
/* What could not be loaded, as without memory, is tried again after this: 0.2 s that are charged to no user. */
#define RETRY_NS (60 * 1000000000ull)
_Static_assert(LATE_PROGRAM_SWITCH + LINKS == LATE_PROGRAMS, "those with a link are the last");

struct late_programs {
	const struct profil_bpf *skel;
	int fd[LATE_PROGRAMS];
	struct {
		bool asked;  /* whether it has been loaded, or could not be */
		int err;     /* of that, */
		__u64 at_ns; /* and when */
	} set[SETS];
	enum set loads; /* the latest */
	struct late_programs_wait *waits;

	int link[LINKS]; /* of the last programs; -1: none */
	bool used;
	struct linger *linger;

	struct jobs *thread;
	struct job job;
	int (*step)(struct late_programs *p);
	int result;   /* of the step */
	bool running; /* the step is being done */
};

/* The constants are copied: those of the first load may be without places. */
static int share_maps(const struct profil_bpf *skel, const struct profil_bpf *with)
{
	const struct bpf_map *from = NULL;
	struct bpf_map *to;
	int err = 0;

	memcpy(with->rodata, skel->rodata, sizeof(*with->rodata));
	with->rodata->counts_places = true;
	bpf_object__for_each_map(to, with->obj)
	{
		from = bpf_object__next_map(skel->obj, from);
		if (!err && to != with->maps.rodata)
			err = bpf_map__reuse_fd(to, bpf_map__fd(from));
	}
	return err;
}

static struct bpf_program *program_of(const struct profil_bpf *skel, enum late_program which)
{
	switch (which) {
	case LATE_PROGRAM_TICK:
		return skel->progs.tick_or_exit;
	case LATE_PROGRAM_PERF:
		return skel->progs.tick_event;
	case LATE_PROGRAM_TRACEPOINT:
		return skel->progs.observed_tracepoint;
	case LATE_PROGRAM_UPROBE:
		return skel->progs.observed_uprobe;
	case LATE_PROGRAM_BRANCHES:
		return skel->progs.branch_event;
	case LATE_PROGRAM_SWITCH:
		return skel->progs.sched_switch;
	case LATE_PROGRAM_WAKEUP:
		return skel->progs.sched_wakeup;
	case LATE_PROGRAM_WAKING:
		return skel->progs.sched_waking;
	case LATE_PROGRAM_CONTENTION_BEGIN:
		return skel->progs.contention_begin;
	case LATE_PROGRAM_CONTENTION_END:
		return skel->progs.contention_end;
	default:
		return NULL;
	}
}

static enum set set_of(enum late_program which)
{
	switch (which) {
	case LATE_PROGRAM_TICK:
		return SET_TICK;
	case LATE_PROGRAM_PERF:
		return SET_PERF;
	default:
		return SET_OTHERS;
	}
}

void late_programs_leave_out(struct profil_bpf *skel, bool places, bool perf)
{
	skel->rodata->counts_places = places || perf;
	for (int i = LATE_PROGRAM_PERF; i < LATE_PROGRAMS; i++)
		bpf_program__set_autoload(program_of(skel, i), perf && set_of(i) == SET_PERF);
}

/* Keeps the programs of @set that @skel has loaded. That of the tick counts from now on. */
static int keep_set(struct late_programs *p, const struct profil_bpf *skel, enum set set)
{
	const __u32 key = 0;

	for (int i = 0; i < LATE_PROGRAMS; i++) {
		if (set_of(i) != set)
			continue;
		closep(&p->fd[i]);
		p->fd[i] = fcntl(bpf_program__fd(program_of(skel, i)), F_DUPFD_CLOEXEC, 0);
		if (p->fd[i] < 0)
			return -errno;
	}
	if (set == SET_TICK && bpf_map_update_elem(bpf_map__fd(p->skel->maps.tick_places), &key,
						   &p->fd[LATE_PROGRAM_TICK], BPF_ANY) < 0)
		return -errno;
	return 0;
}

/*
 * The addresses of functions with which the programs of off-CPU time compare. libbpf would find
 * them, too, but in each load of the object.
 */
static void find_functions(struct late_programs *p)
{
	const struct {
		const char *name;
		__u64 *address;
	} wanted[] = {
		{ "__traceiter_sched_switch", &p->skel->data->switch_iterator },
		{ "irq_exit_rcu", &p->skel->data->irq_exit },
	};
	__cleanup(fclosep) FILE *in = fopen("/proc/kallsyms", "re");
	__cleanup(freep) char *line = NULL;
	size_t room = 0;

	while (in && getline(&line, &room, in) > 0) {
		char *end;
		__u64 address = strtoull(line, &end, 16);

		line[strcspn(line, "\n")] = '\0';
		for (int i = 0; i < 2; i++) {
			if (strlen(end) > 3 && !strcmp(end + 3, wanted[i].name))
				*wanted[i].address = address;
		}
	}
}

static int load(struct late_programs *p)
{
	struct profil_bpf *skel = skeleton_open();
	struct bpf_program *program;
	int err = skel ? share_maps(p->skel, skel) : -errno;

	if (!skel)
		return err;
	if (p->loads == SET_OTHERS)
		find_functions(p);
	bpf_object__for_each_program(program, skel->obj) bpf_program__set_autoload(program, false);
	for (int i = 0; i < LATE_PROGRAMS; i++)
		bpf_program__set_autoload(program_of(skel, i), set_of(i) == p->loads);
	err = err ?: bpf_object__load(skel->obj) ?: keep_set(p, skel, p->loads);
	profil_bpf__destroy(skel);
	return err;
}

static void close_links(struct late_programs *p)
{
	for (int i = 0; i < LINKS; i++) {
		closep(&p->link[i]);
		p->link[i] = -1;
	}
}

static int open_links(struct late_programs *p)
{
	for (int i = 0; i < LINKS; i++) {
		p->link[i] = bpf_raw_tracepoint_open(NULL, p->fd[LATE_PROGRAM_SWITCH + i]);
		if (p->link[i] < 0) {
			int err = -errno;

			close_links(p);
			return err;
		}
	}
	return 0;
}

/* --- the thread ------------------------------------------------------------------------------- */

static struct late_programs *of_job(struct job *job)
{
	return (struct late_programs *)((char *)job - offsetof(struct late_programs, job));
}

static void step_run(struct job *job)
{
	struct late_programs *p = of_job(job);

	p->result = p->step(p);
}

static void loaded(struct late_programs *p, int err)
{
	static const char *const of[SETS] = { "places", "perf events",
					      "tracepoints and off-CPU time" };

	p->set[p->loads].err = err;
	p->set[p->loads].at_ns = clock_ns(CLOCK_BOOTTIME);
	if (err)
		log_warning("cannot load the BPF programs of %s: %s (they are not counted)",
			    of[p->loads], strerror(-err));
}

/* Calls what waits, each of which may wait again, once the program is there or cannot be. */
static void wake(struct late_programs *p)
{
	int fd = p->waits ? late_programs_fd(p, LATE_PROGRAM_PERF) : -EINPROGRESS;

	while (fd != -EINPROGRESS && p->waits) {
		struct late_programs_wait *wait = p->waits;

		p->waits = wait->next;
		wait->done(wait, fd < 0 ? fd : 0);
	}
}

static void step_done(struct job *job)
{
	struct late_programs *p = of_job(job);

	p->running = false;
	if (p->step == load)
		loaded(p, p->result);
	wake(p);
}

static int start(struct late_programs *p, int (*step)(struct late_programs *p))
{
	p->job = (struct job){ .run = step_run, .done = step_done };
	p->step = step;
	p->running = true;
	jobs_submit(p->thread, &p->job);
	return -EINPROGRESS;
}

/* --- users ------------------------------------------------------------------------------------ */

static void on_linger(void *arg)
{
	struct late_programs *p = arg;

	if (p->used)
		return;
	if (p->running) {
		linger_begin(p->linger);
		return;
	}
	close_links(p);
}

int late_programs_open(struct late_programs **out, const struct profil_bpf *skel, sd_event *event)
{
	struct late_programs *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->skel = skel;
	for (int i = 0; i < LINKS; i++)
		p->link[i] = -1;
	for (int i = 0; i < LATE_PROGRAMS; i++)
		p->fd[i] = -1;
	*out = p;
	p->set[SET_TICK].asked = skel->rodata->counts_places;
	p->set[SET_PERF].asked = bpf_program__fd(program_of(skel, LATE_PROGRAM_PERF)) >= 0;
	for (int set = SET_TICK; set <= SET_PERF; set++) {
		err = p->set[set].asked ? keep_set(p, skel, set) : 0;
		if (err)
			return err;
	}
	err = jobs_open(&p->thread, event, 1);
	return err ? err : linger_open(&p->linger, event, on_linger, p);
}

struct late_programs *late_programs_close(struct late_programs *p)
{
	if (!p)
		return NULL;
	jobs_close(p->thread);
	linger_close(p->linger);
	close_links(p);
	for (int i = 0; i < LATE_PROGRAMS; i++)
		closep(&p->fd[i]);
	free(p);
	return NULL;
}

/* A set that is there can be had while the thread does something else; its links can not. */
int late_programs_fd(struct late_programs *p, enum late_program which)
{
	enum set set = set_of(which);
	bool busy = p->running && (set == SET_OTHERS || !p->set[set].asked ||
				   (p->step == load && p->loads == set));

	if (busy)
		return -EINPROGRESS;
	if (p->set[set].err && clock_ns(CLOCK_BOOTTIME) - p->set[set].at_ns > RETRY_NS)
		p->set[set].asked = false;
	if (!p->set[set].asked) {
		p->set[set].asked = true;
		p->loads = set;
		return start(p, load);
	}
	return p->set[set].err ? p->set[set].err : p->fd[which];
}

int late_programs_load_perf(struct late_programs *p)
{
	if (!p->set[SET_PERF].asked) {
		p->set[SET_PERF].asked = true;
		p->loads = SET_PERF;
		loaded(p, load(p));
	}
	return p->set[SET_PERF].err;
}

void late_programs_wait(struct late_programs *p, struct late_programs_wait *wait)
{
	wait->next = p->waits;
	p->waits = wait;
}

void late_programs_wait_end(struct late_programs *p, struct late_programs_wait *wait)
{
	struct late_programs_wait **at = &p->waits;

	while (*at && *at != wait)
		at = &(*at)->next;
	if (*at)
		*at = wait->next;
}

int late_programs_link(struct late_programs *p)
{
	int fd = late_programs_fd(p, LATE_PROGRAM_SWITCH);

	if (fd < 0)
		return fd;
	linger_begin(p->linger); /* the caller may give up */
	if (p->link[0] >= 0)
		return 0;
	if (p->step == open_links && p->result) {
		p->step = NULL; /* the next caller tries again */
		return p->result;
	}
	return start(p, open_links);
}

void late_programs_use_links(struct late_programs *p, bool used)
{
	p->used = used;
	if (!used)
		linger_begin(p->linger);
}
