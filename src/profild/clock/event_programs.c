/* event_programs.c - the BPF programs of observed events, loaded when one is first needed */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "event_programs.h"
#include "linger.h"
#include "base/jobs.h"
#include "profild/skeleton.h"

/*
 * The verifier takes 80 ms for each program that counts samples. Those of tracepoints and of
 * off-CPU time are needed by few, so the daemon starts without them. When an observer first asks
 * for one, a thread opens the object a second time, gives it the maps of the first, and loads
 * them.
 *
 * The links of the programs of off-CPU time are made by a thread, too: after another was closed,
 * the kernel first waits for an RCU grace period.
 */
#define FIRST_LOADED EVENT_PROGRAM_TRACEPOINT
#define LINKS 5
_Static_assert(EVENT_PROGRAM_SWITCH + LINKS == EVENT_PROGRAMS, "those with a link are the last");

struct event_programs {
	const struct profil_bpf *skel;
	int fd[EVENT_PROGRAMS];
	bool asked; /* whether they have been loaded, or could not be */
	int err;    /* of that */

	int link[LINKS]; /* of the last programs; -1: none */
	bool used;
	struct linger *linger;

	struct jobs *thread;
	struct job job;
	int (*step)(struct event_programs *p);
	int result;   /* of the step */
	bool running; /* the step is being done */
};

static int share_maps(const struct profil_bpf *skel, const struct profil_bpf *with)
{
	const struct bpf_map *from = NULL;
	struct bpf_map *to;
	int err = 0;

	bpf_object__for_each_map(to, with->obj)
	{
		from = bpf_object__next_map(skel->obj, from);
		if (!err)
			err = bpf_map__reuse_fd(to, bpf_map__fd(from));
	}
	return err;
}

/* The programs that load() keeps, by enum event_program. */
static struct bpf_program *program_of(const struct profil_bpf *skel, enum event_program which)
{
	switch (which) {
	case EVENT_PROGRAM_TRACEPOINT:
		return skel->progs.observed_tracepoint;
	case EVENT_PROGRAM_UPROBE:
		return skel->progs.observed_uprobe;
	case EVENT_PROGRAM_BRANCHES:
		return skel->progs.branch_event;
	case EVENT_PROGRAM_SWITCH:
		return skel->progs.sched_switch;
	case EVENT_PROGRAM_WAKEUP:
		return skel->progs.sched_wakeup;
	case EVENT_PROGRAM_WAKING:
		return skel->progs.sched_waking;
	case EVENT_PROGRAM_CONTENTION_BEGIN:
		return skel->progs.contention_begin;
	case EVENT_PROGRAM_CONTENTION_END:
		return skel->progs.contention_end;
	default:
		return NULL;
	}
}

void event_programs_leave_out(struct profil_bpf *skel)
{
	for (int i = FIRST_LOADED; i < EVENT_PROGRAMS; i++)
		bpf_program__set_autoload(program_of(skel, i), false);
}

static int keep_all(struct event_programs *p, const struct profil_bpf *skel)
{
	for (int i = FIRST_LOADED; i < EVENT_PROGRAMS; i++) {
		p->fd[i] = fcntl(bpf_program__fd(program_of(skel, i)), F_DUPFD_CLOEXEC, 0);
		if (p->fd[i] < 0)
			return -errno;
	}
	return 0;
}

static int load(struct event_programs *p)
{
	struct profil_bpf *skel = skeleton_open();
	struct bpf_program *program;
	int err = skel ? share_maps(p->skel, skel) : -errno;

	if (!skel)
		return err;
	bpf_object__for_each_program(program, skel->obj) bpf_program__set_autoload(program, false);
	for (int i = FIRST_LOADED; i < EVENT_PROGRAMS; i++)
		bpf_program__set_autoload(program_of(skel, i), true);
	err = err ?: bpf_object__load(skel->obj) ?: keep_all(p, skel);
	profil_bpf__destroy(skel);
	return err;
}

static void close_links(struct event_programs *p)
{
	for (int i = 0; i < LINKS; i++) {
		closep(&p->link[i]);
		p->link[i] = -1;
	}
}

static int open_links(struct event_programs *p)
{
	for (int i = 0; i < LINKS; i++) {
		p->link[i] = bpf_raw_tracepoint_open(NULL, p->fd[EVENT_PROGRAM_SWITCH + i]);
		if (p->link[i] < 0) {
			int err = -errno;

			close_links(p);
			return err;
		}
	}
	return 0;
}

/* --- the thread ------------------------------------------------------------------------------- */

static struct event_programs *of_job(struct job *job)
{
	return (struct event_programs *)((char *)job - offsetof(struct event_programs, job));
}

static void step_run(struct job *job)
{
	struct event_programs *p = of_job(job);

	p->result = p->step(p);
}

static void step_done(struct job *job)
{
	struct event_programs *p = of_job(job);

	p->running = false;
	if (p->step != load || !p->result)
		return;
	p->err = p->result;
	log_warning("cannot load the BPF programs of tracepoints and off-CPU time: %s (they are "
		    "not counted)",
		    strerror(-p->err));
}

static int start(struct event_programs *p, int (*step)(struct event_programs *p))
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
	struct event_programs *p = arg;

	if (p->used)
		return;
	if (p->running) {
		linger_begin(p->linger);
		return;
	}
	close_links(p);
}

int event_programs_open(struct event_programs **out, const struct profil_bpf *skel, sd_event *event)
{
	struct event_programs *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->skel = skel;
	for (int i = 0; i < LINKS; i++)
		p->link[i] = -1;
	for (int i = 0; i < EVENT_PROGRAMS; i++)
		p->fd[i] = -1;
	*out = p;
	err = jobs_open(&p->thread, event, 1);
	return err ? err : linger_open(&p->linger, event, on_linger, p);
}

struct event_programs *event_programs_close(struct event_programs *p)
{
	if (!p)
		return NULL;
	jobs_close(p->thread);
	linger_close(p->linger);
	close_links(p);
	for (int i = 0; i < EVENT_PROGRAMS; i++)
		closep(&p->fd[i]);
	free(p);
	return NULL;
}

int event_programs_fd(struct event_programs *p, enum event_program which)
{
	if (which == EVENT_PROGRAM_PERF)
		return bpf_program__fd(p->skel->progs.tick_event);
	if (p->running)
		return -EINPROGRESS;
	if (!p->asked) {
		p->asked = true;
		return start(p, load);
	}
	return p->err ? p->err : p->fd[which];
}

int event_programs_link(struct event_programs *p)
{
	int fd = event_programs_fd(p, EVENT_PROGRAM_SWITCH);

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

void event_programs_use_links(struct event_programs *p, bool used)
{
	p->used = used;
	if (!used)
		linger_begin(p->linger);
}
