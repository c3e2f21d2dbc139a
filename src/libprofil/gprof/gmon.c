/* gmon.c - the profile of a -pg program: replaces the functions that its start-up code calls */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/gmon_file.h"
#include "base/cleanup.h"
#include "libprofil/entry.h"
#include "mcount.h"
#include "libprofil/daemon_call.h"
#include "libprofil/process_area.h"
#include "libprofil/run_notify.h"
#include "libprofil/xform.h"

#define RATE_HZ 100 /* without a daemon; libc's rate */
#define SCALE_1_TO_1 0x10000
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

PROFIL_PUBLIC void __monstartup(unsigned long low, unsigned long high);
PROFIL_PUBLIC __attribute__((__alias__("__monstartup"))) void monstartup(unsigned long low,
									 unsigned long high);
PROFIL_PUBLIC void moncontrol(int mode);
PROFIL_PUBLIC void _mcleanup(void);
PROFIL_PUBLIC void write_profiling(void);
PROFIL_PUBLIC int __profile_frequency(void);
/*
 * glibc's other names of these, in the same object of libc.a: a static program that calls one of
 * them would have both objects, and each function twice.
 */
PROFIL_PUBLIC __attribute__((__alias__("moncontrol"))) void __moncontrol(int mode);
PROFIL_PUBLIC __attribute__((__alias__("write_profiling"))) void __write_profiling(void);

/* Never unmapped: another thread may be counting a call in it at any time. */
static struct profil_graph *graph;
static int shared; /* with profilctl, and after a fork with the parent */
static int on;
static int finished; /* _mcleanup() has written it, and nothing has counted since */

/* An fd of memory that profilctl can still read after the end of this process; -1: none. */
static int shareable(size_t bytes)
{
	__cleanup(closep) int fd = -1;
	struct rlimit most;

	/* Growing a file beyond RLIMIT_FSIZE raises SIGXFSZ. */
	if (getrlimit(RLIMIT_FSIZE, &most) < 0 || bytes > most.rlim_cur)
		return -1;
	fd = memfd_create("gmon", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return -1;
	return steal_fd(fd);
}

/* Maps memory for @g, or returns NULL. *@out is a descriptor of it, or -1 if it is private. */
static struct profil_graph *memory_new(const struct profil_graph *g, int *out)
{
	size_t bytes = graph_bytes(g);
	__cleanup(closep) int fd = run_begin() ? shareable(bytes) : -1;
	struct profil_graph *at;

	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		  fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	*at = *g;
	at->pid = (__u32)getpid();
	*out = steal_fd(fd);
	return at;
}

/* Copies the counts while other threads may count: first the heads, which point at arcs. */
static void copy_counts(struct profil_graph *to, struct profil_graph *from)
{
	memcpy(graph_heads(to), graph_heads(from), sizeof(__u32) * from->heads);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	to->arcs = __atomic_load_n(&from->arcs, __ATOMIC_RELAXED);
	if (to->arcs > to->arcs_max)
		to->arcs = to->arcs_max;
	memcpy(graph_arcs(to), graph_arcs(from), sizeof(struct profil_arc) * to->arcs);
	memcpy(graph_bins(to), graph_bins(from), sizeof(__u32) * from->bins);
}

/* Stops profiling in a child without memory of its own, which would count in its parent's. */
static void give_up(void)
{
	struct profil_msg_reply reply;

	mcount_set(NULL);
	request_stop(&reply);
	graph = NULL;
	on = 0;
}

/* Replaces the memory shared with the parent by a copy of its counts so far: 0 or -ENOMEM. */
static int take_own(void)
{
	size_t bytes = graph_bytes(graph);
	__cleanup(closep) int fd = -1;
	struct profil_graph *own = memory_new(graph, &fd);

	if (!own)
		return -ENOMEM;
	copy_counts(own, graph);
	if (mremap(own, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, graph) == MAP_FAILED) {
		munmap(own, bytes);
		return -ENOMEM;
	}
	shared = fd >= 0;
	graph->forked = 1;
	graph->inherited = graph_counts(graph);
	if (shared)
		run_graph(fd);
	return 0;
}

/* A fork child continues from its parent's counts, in memory of its own at the same address. */
static void part_from_parent(void)
{
	if (!graph || fork_local()->counted)
		return;
	fork_local()->counted = 1;
	if (shared && take_own() < 0) {
		give_up();
		return;
	}
	graph->pid = (__u32)getpid();
	graph->written = 0;
}

/* call_enter(), and part_from_parent() for the child of a raw clone(), which calls no handler. */
static int enter(struct call *c)
{
	int err = call_enter(c);

	if (!err)
		part_from_parent();
	return err;
}

static void after_fork(void)
{
	struct call c;

	if (!graph || enter(&c))
		return;
	call_leave(&c);
}

static __u32 rate_of(__u64 tick_ns)
{
	__u32 hz = (__u32)((1000000000 + tick_ns / 2) / tick_ns);

	return hz ? hz : 1;
}

/* Without a daemon only calls are counted. */
static void start(void)
{
	const struct dialect *d = &dialects[DIALECT_GLIBC_SPROFIL_UINT];
	struct profil_msg_reply reply;
	struct profil_xform x;
	int err;

	if (!graph || on)
		return;
	mcount_set(graph);
	on = 1;
	finished = 0;
	graph->written = 0;
	err = xform_reduce(&x, d, graph->low, SCALE_1_TO_1, sizeof(__u32) * graph->bins)
		      ?: request_start_one(d, &x, graph_bins(graph), REQUEST_ON, &reply);
	if (!err)
		graph->rate_hz = rate_of(reply.tick_ns);
	graph->failed = (__u32)-err;
}

static void stop(void)
{
	struct profil_msg_reply reply;

	if (!graph || !on)
		return;
	mcount_set(NULL);
	on = 0;
	if (!request_stop(&reply)) {
		graph->elsewhere += reply.unmatched;
		graph->lost += reply.lost;
	}
}

/* The first object is the program. */
static int load_of(struct dl_phdr_info *object, size_t bytes, void *load)
{
	*(__u64 *)load = object->dlpi_addr;
	return 1;
}

/* Creates an empty graph of the text from @low to @high, if there is memory for one. */
static void prepare(__u64 low, __u64 high)
{
	struct profil_graph g, *fresh;
	int fd;

	if (graph_shape(&g, low, high))
		return;
	g.rate_hz = RATE_HZ;
	dl_iterate_phdr(load_of, &g.load);
	fresh = memory_new(&g, &fd);
	if (!fresh)
		return;
	if (!graph)
		pthread_atfork(NULL, NULL, after_fork);
	graph = fresh;
	fork_local()->counted = 1;
	shared = fd >= 0;
	if (shared)
		run_graph(fd);
	closep(&fd);
}

void __monstartup(unsigned long low, unsigned long high)
{
	struct call c;

	if (enter(&c))
		return;
	stop();
	prepare(low, high);
	start();
	call_leave(&c);
}

void moncontrol(int mode)
{
	struct call c;

	if (enter(&c))
		return;
	if (mode)
		start();
	else
		stop();
	call_leave(&c);
}

/* Discards the pending SIGXFSZ of a write beyond RLIMIT_FSIZE; signals are blocked in a call. */
static void take_signal(void)
{
	const struct timespec now = { 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	sigtimedwait(&set, NULL, &now);
}

/* Writes gmon.out. Returns 1 if that succeeded; otherwise profilctl may write it. */
static int write_out(void)
{
	static char space[GRAPH_NAME_MAX]; /* exit handlers run on signal stacks, too */
	const char *name;
	int fd, err;

	fd = graph_create(&name, space, secure_getenv(GMON_PREFIX_ENV), getpid());
	if (fd < 0)
		return 0;
	err = graph_write(fd, graph);
	if (err == -EFBIG)
		take_signal();
	close(fd);
	return !err;
}

void _mcleanup(void)
{
	struct call c;

	if (enter(&c))
		return;
	stop();
	/* Only once: a program's own call precedes exit()'s, which may be in another directory. */
	if (graph && !finished) {
		graph->written = (__u32)write_out();
		finished = 1;
	}
	call_leave(&c);
}

/* Writes the counts so far; counting continues. */
void write_profiling(void)
{
	struct profil_msg_reply reply;
	struct call c;

	if (enter(&c))
		return;
	if (on)
		request_sync(&reply);
	if (graph)
		write_out();
	call_leave(&c);
}

int __profile_frequency(void)
{
	__u64 period_ns;
	struct call c;
	int err;

	if (call_enter(&c))
		return RATE_HZ;
	err = request_period(&period_ns);
	call_leave(&c);
	return err ? RATE_HZ : (int)rate_of(period_ns);
}
