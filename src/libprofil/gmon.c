/* gmon.c - a -pg program's own profile: what its startup code calls, in the place of libc's */
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

#include "core/graph.h"
#include "core/scope.h"
#include "call.h"
#include "mcount.h"
#include "request.h"
#include "run.h"
#include "xform.h"

#define RATE_HZ 100 /* of no ticks at all */
#define SCALE_1_TO_1 0x10000
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

PROFIL_PUBLIC void __monstartup(unsigned long low, unsigned long high);
PROFIL_PUBLIC __attribute__((__alias__("__monstartup"))) void monstartup(unsigned long low,
									 unsigned long high);
PROFIL_PUBLIC void moncontrol(int mode);
PROFIL_PUBLIC void _mcleanup(void);

/* Once made, it stays: another thread may be counting a call in it at any time. */
static struct profil_graph *graph;
static int shared; /* with profilctl, and after a fork with the parent */
static int on;

/* Memory that another process can read when this one is dead; -1 where there is none. */
static int shareable(size_t bytes)
{
	__cleanup(closep) int fd = -1;
	struct rlimit most;

	/* Beyond this a file may not grow, and who tries gets a signal. */
	if (getrlimit(RLIMIT_FSIZE, &most) < 0 || bytes > most.rlim_cur)
		return -1;
	fd = memfd_create("gmon", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return -1;
	return steal_fd(fd);
}

/* Memory for @g, of which *@out is a descriptor, or -1 where it is ours alone. NULL: none. */
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

/* What was counted so far, as of some moment while others may count: first what points at arcs. */
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

/* Where it gets no memory of its own a child is not profiled: what it has is its parent's. */
static void give_up(void)
{
	struct profil_msg_reply reply;

	mcount_set(NULL);
	request_stop(&reply);
	graph = NULL;
	on = 0;
}

/* Our own memory with what is counted so far, in the place of that which we share: 0 or -ENOMEM. */
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
	if (shared)
		run_graph(fd);
	return 0;
}

/* A fork child goes on from its parent's counts, but with its own, at the same place. */
static void part_from_parent(void)
{
	if (!graph || graph->pid == (__u32)getpid())
		return;
	if (shared && take_own() < 0) {
		give_up();
		return;
	}
	graph->pid = (__u32)getpid();
	graph->forked = 1;
	graph->written = 0;
}

/* As call_enter(); of a raw clone no handler has told us, so it parts at whatever it calls first.
 */
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

/* Without a daemon there are no ticks, but calls. */
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
	graph->written = 0;
	err = xform_reduce(&x, d, graph->low, SCALE_1_TO_1, sizeof(__u32) * graph->bins);
	if (!err)
		err = request_start_one(d, &x, graph_bins(graph), REQUEST_ON, &reply);
	if (!err)
		graph->rate_hz = (__u32)((1000000000 + reply.tick_ns / 2) / reply.tick_ns);
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
	(void)bytes;
	*(__u64 *)load = object->dlpi_addr;
	return 1;
}

/* A graph of the text from @low to @high, with nothing in it; that there is none is no error. */
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

/* What a write beyond RLIMIT_FSIZE leaves: blocked as long as we are in here, no longer. */
static void take_signal(void)
{
	const struct timespec now = { 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	sigtimedwait(&set, NULL, &now);
}

/* Where it cannot be written here, by this user, profilctl writes it. */
static void write_out(void)
{
	char space[GRAPH_NAME_MAX];
	const char *name;
	int fd, err;

	fd = graph_create(&name, space, secure_getenv(GMON_PREFIX_ENV), getpid());
	if (fd < 0)
		return;
	err = graph_write(fd, graph);
	if (err == -EFBIG)
		take_signal();
	graph->written = !err;
	close(fd);
}

void _mcleanup(void)
{
	struct call c;

	if (enter(&c))
		return;
	stop();
	if (graph)
		write_out();
	call_leave(&c);
}
