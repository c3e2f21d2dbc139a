/* worker.c - worker processes, from the daemon's side */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "spawner.h"
#include "worker.h"

struct worker {
	struct birth birth;
	struct worker *next;
	sd_event *event;
	bool running; /* the process exists, or the spawner has been asked for it */
	bool killed;
	int pidfd; /* -1: the spawner has not answered */
	int sock;
	bool ended;
	sd_event_source *answers;
	sd_event_source *end;
	union work_area *area;
	void (*answered)(void *arg, const struct work_answer *a);
	void *arg;
	struct charge charge; /* of one that was given up */
};

static struct worker *all;
static struct spawner *spawner;

/* One callback for all workers: its receiver waits for any of them. */
static struct {
	void (*fn)(void *arg);
	void *arg;
} on_end;

void workers_on_end(void (*fn)(void *arg), void *arg)
{
	on_end.fn = fn;
	on_end.arg = arg;
}

static void worker_free(struct worker *w)
{
	struct worker **place = &all;

	while (*place && *place != w)
		place = &(*place)->next;
	if (*place)
		*place = w->next;
	sd_event_source_disable_unref(w->answers);
	sd_event_source_disable_unref(w->end);
	closep(&w->sock);
	closep(&w->pidfd);
	if (w->area)
		munmap(w->area, sizeof(*w->area));
	charge_give(&w->charge);
	free(w);
}

static int worker_answered(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct worker *w = userdata;
	struct work_answer a;
	ssize_t n = recv(fd, &a, sizeof(a), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n != sizeof(a)) {
		w->ended = true;
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
	}
	if (w->answered)
		w->answered(w->arg, n == sizeof(a) ? &a : NULL);
	return 0;
}

/* Frees a worker that was closed or given up. */
static void worker_ended(struct worker *w)
{
	bool given_up = w->charge.user;

	w->running = false;
	if (w->sock >= 0)
		return; /* worker_answered() reports the end */
	worker_free(w);
	if (given_up && on_end.fn)
		on_end.fn(on_end.arg);
}

static int worker_on_end(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	worker_ended(userdata);
	return 0;
}

static void worker_kill(struct worker *w)
{
	w->killed = true; /* without a pidfd worker_born() kills it */
	if (w->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, w->pidfd, SIGKILL, NULL, 0);
}

static void worker_born(struct birth *b, int pidfd)
{
	struct worker *w = (struct worker *)b;
	int err = -EAGAIN;

	if (pidfd >= 0) {
		w->pidfd = pidfd;
		err = sd_event_add_io(w->event, &w->end, pidfd, EPOLLIN, worker_on_end, w);
		if (w->killed || err < 0)
			worker_kill(w);
	}
	if (err < 0)
		worker_ended(w);
}

/* Sends the other end of the socket and the area to the spawner. */
static int worker_ask(struct worker *w)
{
	__cleanup(closep) int area = memfd_create("profild-worker", MFD_CLOEXEC);
	__cleanup(closep) int other = -1;
	int pair[2], err;

	if (area < 0 || ftruncate(area, sizeof(*w->area)) < 0)
		return -errno;
	w->area = mmap(NULL, sizeof(*w->area), PROT_READ | PROT_WRITE, MAP_SHARED, area, 0);
	if (w->area == MAP_FAILED) {
		w->area = NULL;
		return -ENOMEM;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	w->sock = pair[0];
	other = pair[1];
	err = spawner_ask(spawner, (int[]){ other, area }, &w->birth);
	if (err)
		return err;
	steal_fd(other);
	steal_fd(area);
	return 0;
}

int worker_new(struct worker **out, uid_t account, sd_event *event)
{
	struct worker *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->sock = w->pidfd = -1;
	w->event = event;
	w->birth.born = worker_born;
	w->birth.account = account;
	err = worker_ask(w);
	if (err) {
		worker_free(w);
		return err;
	}
	w->running = true;
	w->next = all;
	all = w;
	err = sd_event_add_io(event, &w->answers, w->sock, EPOLLIN, worker_answered, w);
	if (err < 0) {
		worker_close(w);
		return err;
	}
	*out = w;
	return 0;
}

int workers_open(sd_event *event)
{
	return spawner_open(&spawner, event);
}

void worker_serve(struct worker *w, void (*answered)(void *arg, const struct work_answer *a),
		  void *arg)
{
	w->answered = answered;
	w->arg = arg;
}

int worker_send(struct worker *w, const struct work *work, const int *fds, unsigned int nfds)
{
	union wire_fds room;
	struct iovec iov = { (void *)(unsigned long)work, sizeof(*work) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fds && nfds)
		wire_put_fds(&msg, &room, fds, nfds);
	if (sendmsg(w->sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(*work))
		return -errno;
	return 0;
}

bool worker_is_alive(const struct worker *w)
{
	return w->running && !w->ended;
}

bool worker_is_born(const struct worker *w)
{
	return w->pidfd >= 0;
}

union work_area *worker_area(struct worker *w)
{
	return w->area;
}

/* The event loop reaps the process. */
void worker_close(struct worker *w)
{
	w->answers = sd_event_source_disable_unref(w->answers);
	w->answered = NULL;
	close(steal_fd(w->sock));
	if (!w->running)
		worker_free(w);
}

void workers_forget(void)
{
	spawner = spawner_close(spawner);
	while (all)
		worker_free(all);
}

void worker_give_up(struct worker *w, struct user *u)
{
	if (w->running) {
		worker_kill(w);
		charge_adopt(&w->charge, u, RES_OPERATIONS, 1);
	}
	worker_close(w);
}
