/* event_programs.c - the BPF programs of observed events, loaded when one is first needed */
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/cleanup.h"
#include "core/log.h"
#include "event_programs.h"
#include "profild/skeleton.h"

/*
 * The verifier takes 80 ms for each program that counts samples. Those of tracepoints and of
 * off-CPU time are needed by few, so the daemon starts without them. When an observer first asks
 * for one, a thread opens the object a second time, gives it the maps of the first, and loads the
 * two.
 */
enum state { NOT_LOADED, LOADING, LOADED };

struct event_programs {
	const struct profil_bpf *skel;
	int fd[EVENT_PROGRAMS];
	int err;
	enum state state; /* set to LOADED by the thread */
	bool running;	  /* the thread has not been joined */
	pthread_t thread;
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
	struct profil_bpf *skel = profil_bpf__open();
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

static void *run(void *arg)
{
	struct event_programs *p = arg;

	p->err = load(p);
	__atomic_store_n(&p->state, LOADED, __ATOMIC_RELEASE);
	return NULL;
}

static void join(struct event_programs *p)
{
	if (p->running)
		pthread_join(p->thread, NULL);
	p->running = false;
}

int event_programs_open(struct event_programs **out, const struct profil_bpf *skel)
{
	struct event_programs *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->skel = skel;
	for (int i = 0; i < EVENT_PROGRAMS; i++)
		p->fd[i] = -1;
	*out = p;
	return 0;
}

struct event_programs *event_programs_close(struct event_programs *p)
{
	if (!p)
		return NULL;
	join(p);
	for (int i = 0; i < EVENT_PROGRAMS; i++)
		closep(&p->fd[i]);
	free(p);
	return NULL;
}

static int start_load(struct event_programs *p)
{
	int err;

	p->state = LOADING;
	err = -pthread_create(&p->thread, NULL, run, p);
	p->running = !err;
	if (err)
		p->state = NOT_LOADED;
	return err ? err : -EINPROGRESS;
}

int event_programs_fd(struct event_programs *p, enum event_program which)
{
	enum state state = __atomic_load_n(&p->state, __ATOMIC_ACQUIRE);

	if (which == EVENT_PROGRAM_PERF)
		return bpf_program__fd(p->skel->progs.tick_event);
	if (state == NOT_LOADED)
		return start_load(p);
	if (state == LOADING)
		return -EINPROGRESS;
	if (p->running && p->err)
		log_warning("cannot load the BPF programs of tracepoints and off-CPU time: %s "
			    "(they are not counted)",
			    strerror(-p->err));
	join(p);
	return p->err ? p->err : p->fd[which];
}
