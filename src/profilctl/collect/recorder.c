/* recorder.c - a recording: connects to a daemon, attaches, waits, writes the report */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/cleanup.h"
#include "base/clocks.h"

#include "symbols/proc/cgroups.h"
#include "symbols/proc/procfs.h"
#include "base/grow.h"
#include "profilctl/output/output.h"
#include "base/progress.h"
#include "profilctl/util/exit_status.h"
#include "recorder.h"
#include "table/stack_reader.h"

/*
 * Interval of table_reader_update(). Images of a process that ended in between are opened by path.
 */
#define UPDATE_NS 100000000u
/*
 * With call graphs a new file has no unwind rules until the next update. Most new files appear in
 * the first moments, so updates are more frequent then.
 */
#define FEED_FIRST_NS 5000000u
#define FEED_FIRST_FOR_NS 2000000000u
#define FEED_NS 20000000u

/* Interval at which the CPU time of a process is read, times their number: reading costs 60 us. */
#define CPU_TIME_NS 100000000u

/* Interval at which files are let go, but for the end: reading their names must not prolong it. */
#define LET_GO_NS 1000000000u

/* The table of a recording has 5 MiB with them. 8192 groups are the most that profild grants. */
#define RECORDING_GROUPS 8192
#define RECORDING_PLACES 327680
/* With -g 8 and 32 MiB: clang has 100,000 call paths, and with LLVM two or three million rules. */
#define RECORDING_NODES (1u << 18)
#define RECORDING_UNWIND_ROWS (1u << 22)

enum source {
	SOURCE_DAEMON,
	SOURCE_PROCESS,
	SOURCE_SIGNAL,
	SOURCE_INPUT,
};

static int listen_to(const struct recorder *r, int fd, enum source source, size_t index)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = index << 8 | source };

	return epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

static int init(struct recorder *r, const struct options *o)
{
	int status, err;

	*r = (struct recorder){ .options = o, .signals = -1, .epoll = -1, .command = COMMAND_NONE };
	status = output_open(&r->out, o);
	if (status)
		return status;
	r->profile = profile_new();
	if (r->profile)
		host_identify(&r->profile->host);
	r->signals = self_prepare(&r->self);
	r->epoll = epoll_create1(EPOLL_CLOEXEC);
	err = !r->profile ? -ENOMEM : r->signals < 0 ? r->signals : r->epoll < 0 ? -errno : 0;
	if (!err)
		err = listen_to(r, r->signals, SOURCE_SIGNAL, 0);
	if (err < 0) {
		log_err("cannot begin: %s", strerror(-err));
		return CTL_ERROR;
	}
	return CTL_OK;
}

int recorder_init(struct recorder *r, const struct options *o)
{
	int status = init(r, o);

	return status ? status : daemon_reach(&r->client, &r->daemon, o);
}

int recorder_init_connected(struct recorder *r, const struct options *o)
{
	int status = init(r, o);

	return status ? status : daemon_connect(&r->client, o);
}

/* Prints a note if the daemon's rate differs by more than 1 % from the requested one. */
static void compare_rate(double asked_hz, __u64 tick_ns)
{
	double hz = tick_ns ? 1e9 / (double)tick_ns : 0;

	if (fabs(hz - asked_hz) > 0.01 * asked_hz)
		log_warning("a rate of %.6g Hz cannot be met: it is %.6g Hz", asked_hz, hz);
}

static void fill_in(struct recorder *r, const struct profil_msg_observe *m)
{
	const struct options *o = r->options;

	r->asked = *m;
	if (!o->no_inherit)
		r->asked.flags |= PROFIL_OBSERVE_INHERIT;
	r->asked.flags |= PROFIL_OBSERVE_FOLLOW;
	if (o->user_only)
		r->asked.flags |= PROFIL_OBSERVE_USER_ONLY;
	if (o->kernel_stacks)
		r->asked.flags |= PROFIL_OBSERVE_KERNEL_STACKS;
	r->asked.flags |= PROFIL_OBSERVE_FUNCTIONS | (o->native ? PROFIL_OBSERVE_NATIVE : 0u);
	r->asked.stack_mode = o->stack_mode;
	if (o->stack_mode && m->scope != PROFIL_SCOPE_PROCESSES)
		r->asked.flags |= PROFIL_OBSERVE_LATER;
	if (!r->asked.group_by)
		r->asked.group_by = (o->threads ? PROFIL_GROUP_THREAD : PROFIL_GROUP_PROCESS) |
				    PROFIL_GROUP_COMMAND;
}

/* Says whether the daemon has refused the rate, and not the whole machine. */
static bool may_observe_machine(struct recorder *r)
{
	__cleanup(closep) int table = -1;
	struct profil_msg_reply reply;
	int err = client_machine(r->client, PROFIL_MACHINE_QUERY, 0, &reply, &table);

	return err != -EPERM && err != -EACCES;
}

static __u64 period_of(const struct options *o, __u64 default_hz)
{
	__u64 period_ns = options_period_ns(o);

	return period_ns || !default_hz ? period_ns : (1000000000u + default_hz / 2) / default_hz;
}

/* If the daemon forbids the default rate, uses the daemon's. */
static int ask(struct recorder *r, __u64 default_hz, struct profil_msg_reply *reply, int *table,
	       int *unwind)
{
	const struct options *o = r->options;
	bool is_event = r->asked.flags & PROFIL_OBSERVE_EVENT;
	int err;

	if (!is_event)
		r->asked.period_ns = period_of(o, default_hz);
	if (!is_event && (o->clock_by_event || (!o->rate_hz && default_hz)))
		r->asked.flags |= PROFIL_OBSERVE_CPU_CLOCK;
	err = client_observe(r->client, &r->asked, reply, table, unwind);
	if (r->asked.scope == PROFIL_SCOPE_MACHINE && (err == -EPERM || err == -EACCES) &&
	    !may_observe_machine(r)) {
		log_notice("only your own processes are observed (run as root, or join group "
			   "profil, for the whole machine)");
		r->asked.scope = PROFIL_SCOPE_USER;
		r->asked.uid = geteuid();
		err = client_observe(r->client, &r->asked, reply, table, unwind);
	}
	if (o->rate_hz || is_event || o->clock_by_event || !default_hz ||
	    (err != -EINVAL && err != -EACCES && err != -ERANGE))
		return err;
	r->asked.period_ns = 0;
	r->asked.flags &= ~(__u32)PROFIL_OBSERVE_CPU_CLOCK;
	return client_observe(r->client, &r->asked, reply, table, unwind);
}

/* Files whose tables take long must not prolong a recording. */
static bool is_over(void *arg)
{
	const struct recorder *r = arg;

	return (r->end_ns && now_ns() >= r->end_ns) || recorder_interrupted(r);
}

int recorder_feed(struct recorder *r, int unwind)
{
	int err = unwind_feeder_open(&r->feeder, unwind, &r->reader.table);

	r->stop = (struct unwind_stop){ is_over, r };
	r->feeder.stop = &r->stop;
	return err;
}

static int read_table(struct recorder *r, int table, int unwind)
{
	bool is_time = options_wall(r->options) || options_latency(r->options);
	int err = table_reader_open(&r->reader, table, r->profile);

	if (!err && unwind >= 0)
		err = recorder_feed(r, unwind);
	if (!err)
		err = listen_to(r, client_fd(r->client), SOURCE_DAEMON, 0);
	if (err < 0) {
		log_err("cannot read profild's table: %s",
			err == -EPROTO ? "it is of another version" : strerror(-err));
		return CTL_ERROR;
	}
	if (r->options->kernel_stacks &&
	    !(r->reader.table.head->flags & PROFIL_OBSERVE_KERNEL_STACKS))
		log_notice("stacks have no frames of the kernel: only root and group profil may "
			   "record them");
	r->profile->started = time(NULL);
	is_time = options_wall(r->options) || options_latency(r->options);
	if (!r->profile->event || is_time)
		r->profile->tick_ns = r->reader.table.head->period_ns;
	if (is_time)
		r->profile->period = r->profile->tick_ns;
	return CTL_OK;
}

void recorder_room(struct profil_msg_observe *m)
{
	m->groups = RECORDING_GROUPS;
	m->places = RECORDING_PLACES;
	m->nodes = RECORDING_NODES;
	m->unwind_rows = RECORDING_UNWIND_ROWS;
}

/*
 * Makes the unwind rules of the processes that are selected now, so that their first samples have
 * whole stacks, and then begins to count.
 */
static int begin(struct recorder *r)
{
	struct procfs_select select = r->options->select;
	struct cgroups cgroups = { 0 };
	__cleanup(freep) pid_t *pids = NULL;
	struct profil_msg_reply reply;
	size_t n = 0;
	int err;

	if (r->asked.scope == PROFIL_SCOPE_CGROUP)
		select.cgroup = cgroups_path(&cgroups, r->asked.cgroup);
	if (procfs_find(&pids, &n, &select) == 0)
		unwind_feeder_prepare_all(&r->feeder, pids, n);
	cgroups_fini(&cgroups);
	err = client_begin(r->client, &reply);
	for (size_t i = 0; i < n && r->asked.flags & PROFIL_OBSERVE_WAITS; i++)
		quiet_threads_note(&r->quiet, pids[i]);
	r->asked.flags &= ~(__u32)PROFIL_OBSERVE_LATER; /* recorder_renew() begins at once */
	return err < 0 ? recorder_refused(r, err) : CTL_OK;
}

int recorder_observe(struct recorder *r, const struct profil_msg_observe *m, __u64 default_hz)
{
	__cleanup(closep) int table = -1;
	__cleanup(closep) int unwind = -1;
	struct profil_msg_reply reply;
	int err, status;

	fill_in(r, m);
	err = ask(r, default_hz, &reply, &table, &unwind);
	if (err < 0)
		return recorder_refused(r, err);
	status = read_table(r, table, unwind);
	if (!status && r->asked.flags & PROFIL_OBSERVE_LATER)
		status = begin(r);
	if (!status && !r->profile->event && options_rate(r->options))
		compare_rate(options_rate(r->options), r->profile->tick_ns);
	return status;
}

int recorder_machine(struct recorder *r)
{
	__cleanup(closep) int table = -1;
	struct profil_msg_reply reply;
	int err = client_machine(r->client, PROFIL_MACHINE_QUERY, 0, &reply, &table);

	r->machine = true;
	r->asked.scope = PROFIL_SCOPE_MACHINE;
	if (err == -ENOENT || (!err && table < 0)) {
		log_err("the machine's profile is off; 'profilctl machine on' turns it on");
		return CTL_GONE;
	}
	return err < 0 ? recorder_refused(r, err) : read_table(r, table, -1);
}

static int add_failed(pid_t pid, int err)
{
	switch (err) {
	case -ENODATA:
		log_err("profild has ended");
		return CTL_ERROR;
	case -ESRCH:
		if (procfs_has_ended(pid))
			log_err("process %d has ended", (int)pid);
		else
			log_err("profild does not see process %d, as in another pid namespace",
				(int)pid);
		return CTL_GONE;
	case -EACCES:
	case -EPERM:
		log_err("cannot observe process %d: permission denied (%s)", (int)pid,
			geteuid() ? "run as root, or join group profil"
				  : "this root may not: ask the one outside the container");
		return CTL_DENIED;
	}
	log_err("cannot observe process %d: %s", (int)pid, strerror(-err));
	return CTL_ERROR;
}

/*
 * Opening the file proves to the daemon that profilctl has permission to read process @pid. Members
 * of group profil need no proof: without permission it is the file of profilctl itself.
 */
static int open_maps(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : errno == ENOENT ? -ESRCH : -errno;
}

int recorder_attach(struct recorder *r, const struct watched *w)
{
	__cleanup(closep) int maps = open_maps(w->pid);
	struct profil_msg_reply reply;

	return maps < 0 ? maps : client_add(r->client, w->pidfd, maps, &reply);
}

static int watch(struct recorder *r, pid_t pid)
{
	struct watched *more = grow(r->watched, r->nwatched, sizeof(*more));
	int err;

	if (!more)
		return -ENOMEM;
	r->watched = more;
	more += r->nwatched;
	*more = (struct watched){ .pid = pid, .pidfd = (int)syscall(SYS_pidfd_open, pid, 0) };
	if (more->pidfd < 0)
		return -errno;
	err = listen_to(r, more->pidfd, SOURCE_PROCESS, r->nwatched);
	if (err < 0) {
		closep(&more->pidfd);
		return err;
	}
	r->nwatched++;
	return 0;
}

int recorder_watch(struct recorder *r, pid_t pid)
{
	int err = watch(r, pid);

	return err < 0 ? add_failed(pid, err) : CTL_OK;
}

static int add(struct recorder *r, pid_t pid)
{
	struct watched *w;
	int err = watch(r, pid);

	if (err < 0)
		return err;
	w = &r->watched[r->nwatched - 1];
	w->before_ns = procfs_cpu_ns(pid);
	w->added = true;
	return recorder_attach(r, w);
}

int recorder_add(struct recorder *r, pid_t pid)
{
	int err;

	unwind_feeder_prepare(&r->feeder, pid); /* before the first sample needs them */
	err = add(r, pid);
	if (err < 0)
		return add_failed(pid, err);
	if (r->asked.flags & PROFIL_OBSERVE_WAITS)
		quiet_threads_note(&r->quiet, pid);
	if (!r->profile->command)
		r->profile->command = procfs_command(pid);
	if (!r->profile->pid)
		r->profile->pid = pid;
	return CTL_OK;
}

void recorder_note_children(struct recorder *r)
{
	__cleanup(freep) pid_t *pids = calloc(r->nwatched + 1, sizeof(*pids));

	if (!pids || r->options->no_inherit)
		return;
	for (size_t i = 0; i < r->nwatched; i++)
		pids[i] = r->watched[i].pid;
	attached_children_begin(&r->children, pids, r->nwatched);
}

/* /proc shows the CPU time of an ended process until its parent reaps it. */
static void note_cpu_time(struct watched *w)
{
	__u64 now_ns = w->added ? procfs_cpu_ns(w->pid) : 0;

	if (now_ns > w->before_ns)
		w->cpu_ns = now_ns - w->before_ns;
}

void recorder_note_cpu_time(struct recorder *r)
{
	for (size_t i = 0; i < r->nwatched; i++) {
		if (!r->watched[i].ended)
			note_cpu_time(&r->watched[i]);
	}
}

/* Handles an event. Returns 1 to continue, 0 at the end, or a negative errno. */
static int step(struct recorder *r, const struct epoll_event *e)
{
	enum source source = (enum source)(e->data.u64 & 0xff);
	struct watched *w;

	if (source == SOURCE_SIGNAL)
		return 0;
	if (source == SOURCE_DAEMON)
		return -ENODATA;
	if (source == SOURCE_INPUT)
		return 1;
	w = &r->watched[e->data.u64 >> 8];
	epoll_ctl(r->epoll, EPOLL_CTL_DEL, w->pidfd, NULL);
	note_cpu_time(w);
	w->ended = true;
	r->nended++;
	return r->nended < r->nwatched;
}

int recorder_input(struct recorder *r, int fd)
{
	return listen_to(r, fd, SOURCE_INPUT, 0);
}

static int timeout_ms(__u64 now, __u64 next_ns)
{
	return next_ns <= now ? 0 : (int)((next_ns - now + 999999) / 1000000);
}

static __u64 update_every_ns(struct recorder *r, __u64 now)
{
	if (!r->feeder.rows)
		return UPDATE_NS;
	if (!r->fed_since_ns)
		r->fed_since_ns = now;
	return now - r->fed_since_ns < FEED_FIRST_FOR_NS ? FEED_FIRST_NS : FEED_NS;
}

/* Opens new images while their processes exist. */
static int update(struct recorder *r, __u64 now)
{
	int err;

	if (now < r->next_update_ns)
		return 0;
	r->next_update_ns = now + update_every_ns(r, now);
	if (now >= r->next_cpu_time_ns) {
		r->next_cpu_time_ns = now + CPU_TIME_NS * (__u64)r->nwatched;
		recorder_note_cpu_time(r);
	}
	err = table_reader_update(&r->reader);
	if (!err)
		unwind_feeder_update(&r->feeder, &r->reader);
	return err;
}

static __u64 sooner(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

int recorder_wait(struct recorder *r, __u64 until_ns)
{
	struct epoll_event events[64];
	__u64 now = now_ns();
	bool input = false;
	int on = 1;

	while (on > 0 && now < until_ns && !input) {
		int n = epoll_wait(r->epoll, events, 64,
				   timeout_ms(now, sooner(until_ns, r->next_update_ns)));

		if (n < 0 && errno != EINTR)
			return -errno;
		input |= n < 0; /* a signal: the terminal may have another size */
		for (int i = 0; i < n && on > 0; i++) {
			on = step(r, &events[i]);
			input |= (events[i].data.u64 & 0xff) == SOURCE_INPUT;
		}
		now = now_ns();
		if (on > 0)
			on = update(r, now) ?: 1;
	}
	return on;
}

/* Waits until the end. Returns as recorder_wait(). */
static int run(struct recorder *r, __u64 began)
{
	const struct options *o = r->options;
	__u64 end_ns = r->end_ns ? r->end_ns : ~0ull, now = began;
	__u64 progress_ns = progress_wanted() ? began + PROGRESS_EVERY_NS : ~0ull;
	int on = 1;

	r->slices.of = (struct slices){ .max = o->nslices, .slice_ns = o->slice_ns };
	while (on > 0 && now < end_ns) {
		__u64 slice_ns = o->slice_ns ? began + slices_next_ns(&r->slices.of) : ~0ull;

		on = recorder_wait(
			r, sooner(sooner(end_ns, now + LET_GO_NS), sooner(progress_ns, slice_ns)));
		now = now_ns();
		if (on > 0 && now + LET_GO_NS < end_ns)
			on = file_release(&r->release, &r->reader, &r->names) ?: 1;
		if (on > 0 && now >= slice_ns)
			on = time_reader_take(&r->slices, &r->reader, now) ?: 1;
		if (on > 0 && now >= progress_ns) {
			progress_ns = now + PROGRESS_EVERY_NS;
			progress_show(now - began, table_total(&r->reader.table));
		}
	}
	return on;
}

bool recorder_interrupted(const struct recorder *r)
{
	struct pollfd p = { .fd = r->signals, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

int recorder_run(struct recorder *r)
{
	int on;

	r->began_ns = now_ns();
	r->end_ns = r->options->duration_ns ? r->began_ns + r->options->duration_ns : 0;
	on = run(r, r->began_ns);
	progress_clear();
	r->expired = on > 0;
	r->broken = on < 0;
	if (!r->broken)
		return CTL_OK;
	log_err("lost the connection to profild (%s): the report has the samples until now",
		on == -ENODATA ? "it has ended" : strerror(-on));
	return CTL_PARTIAL;
}

int recorder_snapshot(struct recorder *r, struct profile *p)
{
	return stack_reader_read_all(&r->reader, p);
}

void recorder_fini(struct recorder *r)
{
	command_close(&r->command);
	for (size_t i = 0; i < r->nwatched; i++)
		closep(&r->watched[i].pidfd);
	free(r->watched);
	free(r->running);
	client_close(r->client);
	daemon_end(r->daemon);
	unwind_feeder_close(&r->feeder);
	table_reader_close(&r->reader);
	file_release_fini(&r->release);
	symbolize_cache_fini(&r->names);
	time_reader_fini(&r->slices);
	attached_children_fini(&r->children);
	quiet_threads_fini(&r->quiet);
	profile_free(r->profile);
	closep(&r->signals);
	closep(&r->epoll);
	if (r->out && r->out != stdout && r->out != stderr)
		fclose(r->out);
}
