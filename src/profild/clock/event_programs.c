/* event_programs.c - the BPF programs of observed events, loaded when one is first needed */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/thread.h"
#include "event_programs.h"
#include "linger.h"
#include "profild/skeleton.h"

/*
 * The verifier takes 80 ms for each program that counts samples. Those of tracepoints and of
 * off-CPU time are needed by few, so the daemon starts without them. When an observer first asks
 * for one, a thread opens the object a second time, gives it the maps of the first, and loads the
 * two.
 *
 * The link of the program of off-CPU time is made by a thread, too: after another was closed, the
 * kernel first waits for an RCU grace period.
 */
struct event_programs {
	const struct profil_bpf *skel;
	int fd[EVENT_PROGRAMS];
	bool asked; /* whether they have been loaded, or could not be */
	int err;    /* of that */

	int link; /* -1: none */
	bool used;
	struct linger *linger;

	pthread_t thread;
	int (*job)(struct event_programs *p);
	int result;   /* of the job */
	bool running; /* the thread has not been joined */
	bool done;    /* set by the thread */
};

void event_programs_leave_out(struct profil_bpf *skel)
{
	bpf_program__set_autoload(skel->progs.observed_tracepoint, false);
	bpf_program__set_autoload(skel->progs.sched_switch, false);
}

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

static int keep(int *fd, const struct bpf_program *program)
{
	*fd = fcntl(bpf_program__fd(program), F_DUPFD_CLOEXEC, 0);
	return *fd < 0 ? -errno : 0;
}

static int load(struct event_programs *p)
{
	struct profil_bpf *skel = skeleton_open();
	struct bpf_program *program;
	int err = skel ? share_maps(p->skel, skel) : -errno;

	if (!skel)
		return err;
	bpf_object__for_each_program(program, skel->obj)
		bpf_program__set_autoload(program, program == skel->progs.observed_tracepoint ||
							   program == skel->progs.sched_switch);
	if (!err)
		err = bpf_object__load(skel->obj);
	if (!err)
		err = keep(&p->fd[EVENT_PROGRAM_TRACEPOINT], skel->progs.observed_tracepoint);
	if (!err)
		err = keep(&p->fd[EVENT_PROGRAM_OFF_CPU], skel->progs.sched_switch);
	profil_bpf__destroy(skel);
	return err;
}

static int open_link(struct event_programs *p)
{
	p->link = bpf_raw_tracepoint_open(NULL, p->fd[EVENT_PROGRAM_OFF_CPU]);
	return p->link < 0 ? -errno : 0;
}

/* --- the thread ------------------------------------------------------------------------------- */

static void *run(void *arg)
{
	struct event_programs *p = arg;

	p->result = p->job(p);
	__atomic_store_n(&p->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static int start(struct event_programs *p, int (*job)(struct event_programs *p))
{
	int err;

	p->job = job;
	p->done = false;
	err = thread_start(&p->thread, run, p);
	p->running = !err;
	return err ? err : -EINPROGRESS;
}

static void join(struct event_programs *p)
{
	if (p->running)
		pthread_join(p->thread, NULL);
	p->running = false;
}

/* Returns the result of the last job; -EINPROGRESS: it is not done. */
static int settle(struct event_programs *p)
{
	if (!p->running)
		return 0;
	if (!__atomic_load_n(&p->done, __ATOMIC_ACQUIRE))
		return -EINPROGRESS;
	join(p);
	if (p->job == load) {
		p->err = p->result;
		if (p->err)
			log_warning("cannot load the BPF programs of tracepoints and off-CPU "
				    "time: %s (they are not counted)",
				    strerror(-p->err));
	}
	return p->result;
}

/* --- users ------------------------------------------------------------------------------------ */

static void on_linger(void *arg)
{
	struct event_programs *p = arg;

	if (p->used)
		return;
	if (settle(p) == -EINPROGRESS) {
		linger_begin(p->linger);
		return;
	}
	closep(&p->link);
	p->link = -1;
}

int event_programs_open(struct event_programs **out, const struct profil_bpf *skel, sd_event *event)
{
	struct event_programs *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->skel = skel;
	p->link = -1;
	for (int i = 0; i < EVENT_PROGRAMS; i++)
		p->fd[i] = -1;
	*out = p;
	return linger_open(&p->linger, event, on_linger, p);
}

struct event_programs *event_programs_close(struct event_programs *p)
{
	if (!p)
		return NULL;
	join(p);
	linger_close(p->linger);
	closep(&p->link);
	for (int i = 0; i < EVENT_PROGRAMS; i++)
		closep(&p->fd[i]);
	free(p);
	return NULL;
}

int event_programs_fd(struct event_programs *p, enum event_program which)
{
	if (which == EVENT_PROGRAM_PERF)
		return bpf_program__fd(p->skel->progs.tick_event);
	if (settle(p) == -EINPROGRESS)
		return -EINPROGRESS;
	if (!p->asked) {
		p->asked = true;
		return start(p, load);
	}
	return p->err ? p->err : p->fd[which];
}

int event_programs_link(struct event_programs *p)
{
	bool opened = p->running && p->job == open_link;
	int err = settle(p), fd;

	if (err == -EINPROGRESS || (err && opened))
		return err;
	fd = event_programs_fd(p, EVENT_PROGRAM_OFF_CPU);
	if (fd < 0)
		return fd;
	linger_begin(p->linger); /* the caller may give up */
	return p->link < 0 ? start(p, open_link) : 0;
}

void event_programs_use_link(struct event_programs *p, bool used)
{
	p->used = used;
	if (!used)
		linger_begin(p->linger);
}
