/* gmon_collector.c - writes gmon.out for -pg programs that end without writing it */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/gmon_file.h"
#include "base/log.h"
#include "base/cleanup.h"

#include "gmon_collector.h"
#include "symbols/proc/procfs.h"
#include "base/sanitize.h"

struct held_graph {
	struct held_graph *next;
	pid_t pid;
	int pidfd; /* -1: the process had ended already */
	bool ended;
	int memory;
	char name[64];
};

static void held_free(struct held_graph *h)
{
	closep(&h->pidfd);
	closep(&h->memory);
	free(h);
}

/*
 * Maps the memory of @h. The program that wrote it is not trusted and may still write to it: the
 * sizes must agree, the memory must be sealed against shrinking, and the header is a private copy.
 */
static int map(struct profil_graph **out, const struct held_graph *h)
{
	struct profil_graph g;
	struct stat st;
	int seals = fcntl(h->memory, F_GET_SEALS);
	void *at;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(h->memory, &st) < 0 ||
	    st.st_size < (off_t)sizeof(g))
		return -EINVAL;
	at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, h->memory, 0);
	if (at == MAP_FAILED)
		return -errno;
	g = *(volatile struct profil_graph *)at;
	if (graph_bytes(&g) != (size_t)st.st_size) {
		munmap(at, (size_t)st.st_size);
		return -EINVAL;
	}
	memcpy(at, &g, sizeof(g));
	*out = at;
	return 0;
}

/*
 * The file name for a fork child without GMON_OUT_PREFIX. gmon.out belongs to the parent if that
 * still runs, has written it, or has counted anything since the fork. It belongs to the child if
 * that is a daemon, whose parent ended at once with _exit(): its counts include the parent's.
 */
static const char *prefix_of(const struct graphs *all, const struct held_graph *h,
			     const struct profil_graph *g)
{
	const char *prefix = getenv(GMON_PREFIX_ENV);
	bool family = all->own_written || all->most_written > g->inherited;

	for (const struct held_graph *other = all->first; other; other = other->next)
		family |= other != h;
	return !prefix && g->forked && family ? GMON_FILE : prefix;
}

/* Writes into profilctl's working directory, not the program's. */
static int write_for(const char **name, char space[GRAPH_NAME_MAX], struct profil_graph *g,
		     const char *prefix, pid_t pid)
{
	__cleanup(closep) int fd = graph_create(name, space, prefix, (int)pid);

	return fd < 0 ? fd : graph_write(fd, g);
}

static void tell_written(const struct held_graph *h, struct profil_graph *g)
{
	unsigned long long samples = graph_samples(g);

	if (g->forked)
		log_notice("%s (pid %d) wrote its profile: %llu samples, with its parent's",
			   h->name, h->pid, samples);
	else
		log_notice("%s (pid %d) wrote its profile: %llu samples; %llu elsewhere, %llu lost",
			   h->name, h->pid, samples, (unsigned long long)g->elsewhere,
			   (unsigned long long)g->lost);
}

static int tell_unwritten(struct graphs *all, const struct held_graph *h, struct profil_graph *g)
{
	char space[GRAPH_NAME_MAX];
	const char *name;
	int err = write_for(&name, space, g, prefix_of(all, h, g), h->pid);
	unsigned long long counts = graph_counts(g);
	const char *how = h->ended ? "ended without writing its profile" : "runs on";

	if (err)
		log_err("%s (pid %d) %s, and its profile cannot be written to %s: "
			"%s; " GMON_PREFIX_ENV " names another place",
			h->name, h->pid, how, name, strerror(-err));
	else
		log_notice("%s (pid %d) %s: %llu samples%s, now in %s", h->name, h->pid, how,
			   (unsigned long long)graph_samples(g), h->ended ? "" : " so far", name);
	if (!err && counts > all->most_written)
		all->most_written = counts;
	return err;
}

static bool is_idle_child(struct profil_graph *g)
{
	return g->forked && graph_counts(g) <= g->inherited;
}

static int tell(struct graphs *all, const struct held_graph *h)
{
	struct profil_graph *g = NULL;
	int err = map(&g, h);

	if (!g) {
		log_err("%s (pid %d) has no profile that can be read: %s", h->name, h->pid,
			strerror(-err));
		return err;
	}
	if (g->written)
		tell_written(h, g);
	else if (!is_idle_child(g))
		err = tell_unwritten(all, h, g);
	all->own_written |= g->written;
	if (g->failed)
		log_warning("%s (pid %d) has calls, but no samples: %s", h->name, h->pid,
			    g->failed == ENOSYS ? "it reaches no profild"
						: strerror((int)g->failed));
	if (g->uncounted)
		log_warning("%s (pid %d) has too many callers: %llu calls are missing", h->name,
			    h->pid, (unsigned long long)g->uncounted);
	munmap(g, graph_bytes(g));
	return err;
}

/* Reports and drops the graph at @place. */
static void end(struct graphs *g, struct held_graph **place)
{
	struct held_graph *h = *place;
	int err = tell(g, h);

	if (!g->err)
		g->err = err;
	*place = h->next;
	held_free(h);
}

void graphs_forget(struct graphs *g, pid_t pid)
{
	struct held_graph **place = &g->first, *h;

	while (*place && (*place)->pid != pid)
		place = &(*place)->next;
	h = *place;
	if (!h)
		return;
	*place = h->next;
	held_free(h);
}

void graphs_add(struct graphs *g, pid_t pid, int memory)
{
	struct held_graph *h = calloc(1, sizeof(*h)), **place = &g->first;
	struct epoll_event event = { .events = EPOLLIN };
	char comm[sizeof(h->name)];

	graphs_forget(g, pid);
	if (!h) {
		close(memory);
		return;
	}
	h->pid = pid;
	h->memory = memory;
	sanitize(h->name, sizeof(h->name), procfs_comm(pid, comm, sizeof(comm)));
	h->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (h->pidfd >= 0)
		epoll_ctl(g->epoll, EPOLL_CTL_ADD, h->pidfd, &event);
	/*
	 * Appended, so that of several profiles with one name the last program's is written last.
	 */
	while (*place)
		place = &(*place)->next;
	*place = h;
}

static void check_each(struct graphs *g)
{
	for (struct held_graph *h = g->first; h; h = h->next) {
		struct pollfd gone = { .fd = h->pidfd, .events = POLLIN };

		h->ended = h->pidfd < 0 || poll(&gone, 1, 0) > 0;
	}
}

/*
 * Checks twice. After one pass, a process that ended after its own check but before another that
 * the pass marks would be reported after that one, and of two profiles with one name the older
 * would remain.
 */
void graphs_check(struct graphs *g)
{
	check_each(g);
	check_each(g);
}

void graphs_sweep(struct graphs *g)
{
	struct held_graph **place = &g->first;

	while (*place) {
		if ((*place)->ended)
			end(g, place);
		else
			place = &(*place)->next;
	}
}

void graphs_close(struct graphs *g)
{
	graphs_check(g);
	while (g->first)
		end(g, &g->first);
}
