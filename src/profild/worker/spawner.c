/* spawner.c - a small process that forks the worker processes */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "core/wire.h"
#include "spawner.h"
#include "work.h"

#define SENT_MAX 2 /* one is forked while the answer to another is read */

struct spawner {
	sd_event *event;
	pid_t pid;
	int sock;
	sd_event_source *answers;
	struct birth *sent, **sent_end; /* in the order of their requests */
	unsigned int nsent;
	struct birth *waiting; /* by round; none while fewer than SENT_MAX are sent */
	uint64_t round;	       /* of the latest that was sent */
};

/* --- messages --------------------------------------------------------------------------------- */

/* One byte, and @n descriptors. */
static int send_fds(int sock, const int *fd, unsigned int n, int flags)
{
	union wire_fds room;
	char byte = 0;
	struct iovec iov = { &byte, sizeof(byte) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n)
		wire_put_fds(&msg, &room, fd, n);
	return TEMP_FAILURE_RETRY(sendmsg(sock, &msg, flags | MSG_NOSIGNAL)) < 0 ? -errno : 0;
}

/* Returns how many descriptors came, or a negative errno; -EPIPE at the end of the stream. */
static int receive_fds(int sock, int fd[2], int flags)
{
	union {
		char space[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control;
	char byte;
	struct iovec iov = { &byte, sizeof(byte) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.space,
			      .msg_controllen = sizeof(control) };
	ssize_t n = TEMP_FAILURE_RETRY(recvmsg(sock, &msg, flags | MSG_CMSG_CLOEXEC));
	const struct cmsghdr *c;
	size_t bytes;

	if (n <= 0)
		return n ? -errno : -EPIPE;
	c = CMSG_FIRSTHDR(&msg);
	if (!c)
		return 0;
	bytes = c->cmsg_len - CMSG_LEN(0);
	memcpy(fd, CMSG_DATA(c), bytes);
	return (int)(bytes / sizeof(int));
}

/* --- the process ------------------------------------------------------------------------------ */

static void be_worker(int sock, int area_fd)
{
	union work_area *area =
		mmap(NULL, sizeof(*area), PROT_READ | PROT_WRITE, MAP_SHARED, area_fd, 0);

	if (area == MAP_FAILED)
		_exit(1);
	worker_main(sock, area);
}

/* Forks a worker, as a child of the daemon. Returns its pidfd or a negative errno. */
static int spawn(int sock, int area)
{
	int pidfd = -1;
	long pid = syscall(SYS_clone, (unsigned long)(CLONE_PARENT | CLONE_PIDFD | SIGCHLD), NULL,
			   &pidfd, NULL, NULL);

	if (pid == 0)
		be_worker(sock, area);
	return pid < 0 ? -errno : pidfd;
}

/* An answer has the pidfd, or none where there is no process. */
static void spawner_main(int sock)
{
	int fd[2] = { -1, -1 }, n;

	sock = leave_the_daemon(sock, "profild-spawner");
	while ((n = receive_fds(sock, fd, 0)) >= 0) {
		int pidfd = n == 2 ? spawn(fd[0], fd[1]) : -1;

		while (n)
			close(fd[--n]);
		if (send_fds(sock, &pidfd, pidfd >= 0, 0))
			break;
		closep(&pidfd);
	}
	_exit(0);
}

/* --- the daemon's side ------------------------------------------------------------------------ */

static struct birth *pop_sent(struct spawner *s)
{
	struct birth *b = s->sent;

	if (!b)
		return NULL;
	s->sent = b->next;
	if (!s->sent)
		s->sent_end = &s->sent;
	s->nsent--;
	return b;
}

static struct birth *pop_waiting(struct spawner *s)
{
	struct birth *b = s->waiting;

	s->waiting = b->next;
	return b;
}

/* Each waiting one of an account is in a later round than the one before. */
static void wait_for_round(struct spawner *s, struct birth *b)
{
	struct birth **place = &s->waiting;

	b->round = s->round + 1;
	for (const struct birth *w = s->waiting; w; w = w->next) {
		if (w->account == b->account)
			b->round = w->round + 1;
	}
	while (*place && (*place)->round <= b->round)
		place = &(*place)->next;
	b->next = *place;
	*place = b;
}

static void close_fds(struct birth *b)
{
	closep(&b->fd[0]);
	closep(&b->fd[1]);
}

/* Sends the first waiting one. */
static int send_first(struct spawner *s)
{
	struct birth *b = s->waiting;
	int err = send_fds(s->sock, b->fd, 2, MSG_DONTWAIT);

	if (err)
		return err;
	pop_waiting(s);
	close_fds(b);
	s->round = b->round;
	b->next = NULL;
	*s->sent_end = b;
	s->sent_end = &b->next;
	s->nsent++;
	return 0;
}

static void end_process(struct spawner *s)
{
	s->answers = sd_event_source_disable_unref(s->answers);
	closep(&s->sock);
	s->sock = -1;
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		TEMP_FAILURE_RETRY(waitpid(s->pid, NULL, 0));
	}
	s->pid = 0;
}

/* The process has ended, as by the OOM killer: the next request begins another. */
static void on_lost(struct spawner *s, int err)
{
	struct birth *sent = s->sent, *waiting = s->waiting, *next;

	log_warning("the process that starts workers has ended: %s; starting another",
		    strerror(-err));
	end_process(s);
	s->sent = s->waiting = NULL;
	s->sent_end = &s->sent;
	s->nsent = 0;
	for (struct birth *b = sent; b; b = next) {
		next = b->next;
		b->born(b, -1);
	}
	for (struct birth *b = waiting; b; b = next) {
		next = b->next;
		close_fds(b);
		b->born(b, -1);
	}
}

static int on_answer(sd_event_source *source, int sock, uint32_t revents, void *userdata)
{
	struct spawner *s = userdata;
	int fd[2] = { -1, -1 }, n = receive_fds(sock, fd, MSG_DONTWAIT);
	struct birth *b, *refused;

	if (n == -EAGAIN)
		return 0;
	if (n < 0) {
		on_lost(s, n);
		return 0;
	}
	b = pop_sent(s);
	while (s->waiting && s->nsent < SENT_MAX && send_first(s)) {
		refused = pop_waiting(s);
		close_fds(refused);
		refused->born(refused, -1);
	}
	if (b)
		b->born(b, n ? fd[0] : -1);
	else
		closep(&fd[0]);
	return 0;
}

static int begin_process(struct spawner *s)
{
	int pair[2], err = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	s->sock = pair[0];
	s->pid = fork();
	if (s->pid == 0)
		spawner_main(pair[1]);
	if (s->pid < 0)
		err = -errno;
	close(pair[1]);
	err = err ?: sd_event_add_io(s->event, &s->answers, s->sock, EPOLLIN, on_answer, s);
	if (err < 0)
		end_process(s);
	return err < 0 ? err : 0;
}

int spawner_ask(struct spawner *s, const int fd[2], struct birth *b)
{
	int err = s->sock < 0 ? begin_process(s) : 0;

	if (err)
		return err;
	memcpy(b->fd, fd, sizeof(b->fd));
	wait_for_round(s, b);
	if (s->nsent == SENT_MAX || s->waiting != b)
		return 0; /* on_answer() sends it */
	err = send_first(s);
	if (err)
		pop_waiting(s);
	return err;
}

int spawner_open(struct spawner **out, sd_event *event)
{
	struct spawner *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->event = event;
	s->sock = -1;
	s->sent_end = &s->sent;
	err = begin_process(s);
	if (err) {
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

struct spawner *spawner_close(struct spawner *s)
{
	if (!s)
		return NULL;
	end_process(s);
	free(s);
	return NULL;
}
