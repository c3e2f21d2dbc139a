/* graphs.c - the calls and ticks of -pg programs that run, for those that end without writing them
 */
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

#include "core/graph.h"
#include "core/log.h"
#include "core/scope.h"

#include "graphs.h"
#include "procfs.h"

struct held_graph {
	struct held_graph *next;
	pid_t pid;
	int pidfd; /* -1: it had gone before we could ask */
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
 * Maps the memory of @h. The program may be anybody's, and still be there: its sizes must be true,
 * it cannot shrink, and of what it says of itself we keep a copy, on a page of our own.
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

/* What it did not write goes to where we were started: nobody else chooses what we overwrite. */
static int write_for(const char **name, char space[GRAPH_NAME_MAX], struct profil_graph *g,
		     pid_t pid)
{
	__cleanup(closep) int fd = graph_create(name, space, getenv(GMON_PREFIX_ENV), (int)pid);

	return fd < 0 ? fd : graph_write(fd, g);
}

static void tell_written(const struct held_graph *h, struct profil_graph *g)
{
	unsigned long long ticks = graph_ticks(g);

	if (g->forked)
		log_notice("%s (pid %d) wrote its profile: %llu ticks, with its parent's", h->name,
			   h->pid, ticks);
	else
		log_notice("%s (pid %d) wrote its profile: %llu ticks; %llu elsewhere, %llu lost",
			   h->name, h->pid, ticks, (unsigned long long)g->elsewhere,
			   (unsigned long long)g->lost);
}

static int tell_unwritten(const struct held_graph *h, struct profil_graph *g)
{
	char space[GRAPH_NAME_MAX];
	const char *name;
	int err = write_for(&name, space, g, h->pid);
	const char *how = h->ended ? "ended without writing its profile" : "runs on";

	if (err)
		log_err("%s (pid %d) %s, and its profile cannot be written to %s: "
			"%s; " GMON_PREFIX_ENV " names another place",
			h->name, h->pid, how, name, strerror(-err));
	else
		log_notice("%s (pid %d) %s: %llu ticks%s, now in %s", h->name, h->pid, how,
			   (unsigned long long)graph_ticks(g), h->ended ? "" : " so far", name);
	return err;
}

static int tell(const struct held_graph *h)
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
	else
		err = tell_unwritten(h, g);
	if (g->failed)
		log_warning("%s (pid %d) has calls, but no ticks: %s", h->name, h->pid,
			    g->failed == ENOSYS ? "it reaches no profild"
						: strerror((int)g->failed));
	if (g->uncounted)
		log_warning("%s (pid %d) has too many callers: %llu calls are missing", h->name,
			    h->pid, (unsigned long long)g->uncounted);
	munmap(g, graph_bytes(g));
	return err;
}

/* Ends the graph at @place. */
static void end(struct graphs *g, struct held_graph **place)
{
	struct held_graph *h = *place;
	int err = tell(h);

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

	graphs_forget(g, pid);
	if (!h) {
		close(memory);
		return;
	}
	h->pid = pid;
	h->memory = memory;
	procfs_comm(pid, h->name, sizeof(h->name));
	h->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (h->pidfd >= 0)
		epoll_ctl(g->epoll, EPOLL_CTL_ADD, h->pidfd, &event);
	/* Who came later goes on longer: of one name, the last profile stays. */
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
 * Twice: one that ended after we asked for it, but before the end of another that we did see, would
 * be told of after that one, and of one name the older profile would stay.
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
