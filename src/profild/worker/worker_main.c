/* worker_main.c - the worker process: opens, reads and writes the memory of clients */
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "buffer_add.h"
#include "capabilities.h"
#include "process_memory.h"
#include "process_proof.h"
#include "work.h"

/* Descriptors of clients, kept until WORK_DROP. */
struct held {
	struct held *next;
	uint64_t id;
	unsigned int n;
	int fd[];
};

struct served {
	int sock;
	union work_area *area;
	struct memory **slot;
	uint32_t nslots;
	struct held *held;
};

/* --- memories --------------------------------------------------------------------------------- */

static struct memory *memory_at(const struct served *w, uint32_t slot)
{
	return slot < w->nslots ? w->slot[slot] : NULL;
}

static int put_memory(struct served *w, uint32_t slot, struct memory *m)
{
	if (slot >= w->nslots) {
		uint32_t n = slot + 64;
		struct memory **more = reallocarray(w->slot, n, sizeof(struct memory *));

		if (!more) {
			memory_close(m);
			return -ENOMEM;
		}
		memset(more + w->nslots, 0, (n - w->nslots) * sizeof(struct memory *));
		w->slot = more;
		w->nslots = n;
	}
	memory_close(w->slot[slot]);
	w->slot[slot] = m;
	return 0;
}

/*
 * @m: the memory that the process had before its privileges are read; NULL: unknown. They belong to
 * another image if it has exec'd meanwhile.
 */
static bool is_privileged(const struct work *q, struct memory *m)
{
	struct memory *now = NULL;
	bool same;

	if (!process_privileged_as(q->pid, q->uid))
		return false;
	if (!m)
		return true;
	same = memory_open(&now, q->pid) == 0 && memory_image(now) == memory_image(m);
	memory_close(now);
	return same;
}

static int work_open(struct served *w, const struct work *q, struct work_answer *a)
{
	struct memory *m = NULL;
	int err = memory_open(&m, q->pid);

	if (q->flags & WORK_PRIVILEGED)
		a->privileged = is_privileged(q, m);
	if (err)
		return err;
	a->image = memory_image(m);
	return put_memory(w, q->slot, m);
}

static int check_cookie(struct memory *m, const struct work *q)
{
	uint8_t seen[PROFIL_COOKIE_BYTES];
	int err = memory_read(m, q->cookie_addr, seen, sizeof(seen));

	if (err == -ESRCH)
		return err;
	return err || memcmp(seen, q->cookie, sizeof(seen)) ? -EPERM : 0;
}

/*
 * Opens the memory of q->pid if it has both the cookie and fingerprint @image. The cookie alone is
 * not enough, because a process can pass it on to the image that it execs.
 */
static int open_same(struct memory **out, const struct work *q, uint64_t image)
{
	struct memory *m = NULL;
	int err = memory_open(&m, q->pid);

	if (err)
		return err;
	err = memory_image(m) == image ? check_cookie(m, q) : -ESRCH;
	if (err) {
		memory_close(m);
		return err;
	}
	*out = m;
	return 0;
}

static int work_adopt(struct served *w, const struct work *q)
{
	struct memory *m;
	int err = open_same(&m, q, q->image);

	return err ? err : put_memory(w, q->slot, m);
}

static int copy_slot(struct served *w, const struct work *q)
{
	struct memory *m;
	int err = memory_copy(&m, memory_at(w, q->from));

	return err ? err : put_memory(w, q->slot, m);
}

static int work_verify(struct served *w, const struct work *q)
{
	int err = q->flags & WORK_COPY ? copy_slot(w, q) : 0;
	struct memory *m = memory_at(w, q->slot), *now;

	err = err ?: (m ? check_cookie(m, q) : -ESRCH);
	if (err)
		return err;
	memory_forget(m);
	for (uint32_t i = 0; i < q->n; i++) {
		err = memory_writable(m, w->area->range[i].addr, w->area->range[i].bytes);
		if (err)
			return err;
	}
	err = open_same(&now, q, memory_image(m));
	if (!err)
		memory_close(now);
	return err == -EPERM ? -ESRCH : err;
}

static int work_add(const struct served *w, const struct work *q)
{
	struct work_profile *p = (struct work_profile *)w->area->bytes;

	for (uint32_t i = 0; i < q->n; i++)
		p = buffer_add(memory_at(w, p->slot), p);
	return 0;
}

/* --- descriptors of clients ------------------------------------------------------------------- */

static struct held **find_held(struct served *w, uint64_t id)
{
	struct held **place = &w->held;

	while (*place && (*place)->id != id)
		place = &(*place)->next;
	return place;
}

/* A close may block: on TCP's last data (SO_LINGER), or on a FUSE server. */
static void work_drop(struct served *w, uint64_t id)
{
	struct held **place = find_held(w, id), *h = *place;

	if (!h)
		return;
	*place = h->next;
	for (unsigned int i = 0; i < h->n; i++)
		close(h->fd[i]);
	free(h);
}

static void hold(struct served *w, uint64_t id, const int *fds, unsigned int n)
{
	struct held *h = n ? malloc(sizeof(*h) + n * sizeof(h->fd[0])) : NULL;

	if (!h)
		return; /* without memory the fds stay open until this process ends */
	h->id = id;
	h->n = n;
	memcpy(h->fd, fds, n * sizeof(fds[0]));
	h->next = w->held;
	w->held = h;
}

static int work_authorize(struct served *w, const struct work *q, struct work_answer *a)
{
	const struct held *h = *find_held(w, q->id);
	pid_t tgid = 0;
	int err;

	if (!h || h->n != 2)
		return -EBADF;
	err = process_proof(&tgid, q->flags, q->uid, h->fd[0], h->fd[1]);
	a->pid = tgid;
	return err;
}

/* --- requests --------------------------------------------------------------------------------- */

static bool is_answered(const struct work *q)
{
	return q->kind != WORK_CLOSE && q->kind != WORK_HOLD;
}

static void serve(struct served *w, const struct work *q)
{
	struct work_answer a = { 0 };

	switch (q->kind) {
	case WORK_OPEN:
		a.err = work_open(w, q, &a);
		break;
	case WORK_ADOPT:
		a.err = work_adopt(w, q);
		break;
	case WORK_VERIFY:
		a.err = work_verify(w, q);
		break;
	case WORK_ADD:
		a.err = work_add(w, q);
		break;
	case WORK_AUTHORIZE:
		a.err = work_authorize(w, q, &a);
		break;
	case WORK_DROP:
		work_drop(w, q->id);
		break;
	case WORK_CLOSE:
		if (memory_at(w, q->slot))
			w->slot[q->slot] = memory_close(w->slot[q->slot]);
		break;
	case WORK_EXIT:
		_exit(0);
	default:
		break;
	}
	if (is_answered(q) && send(w->sock, &a, sizeof(a), MSG_NOSIGNAL) != sizeof(a))
		_exit(1);
}

/* Receives from @sock into @buf and keeps the descriptors as *@id. Returns the bytes, or -1. */
static ssize_t receive_from(struct served *w, int sock, void *buf, size_t bytes, int flags,
			    const uint64_t *id)
{
	union {
		char space[CMSG_SPACE(PROFIL_MSG_FDS * sizeof(int)) +
			   CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { buf, bytes };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.space,
			      .msg_controllen = sizeof(control) };
	ssize_t n;

	do
		n = recvmsg(sock, &msg, flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	for (struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			hold(w, *id, (const int *)(const void *)CMSG_DATA(c),
			     (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int)));
	}
	return n;
}

/* Receives the message from the socket kept as @id; then keeps the message's descriptors as @id. */
static void take_message(struct served *w, uint64_t id)
{
	struct held **place = find_held(w, id), *h = *place;
	char byte;

	if (!h)
		return;
	*place = h->next;
	receive_from(w, h->fd[0], &byte, sizeof(byte), MSG_DONTWAIT, &id);
	close(h->fd[0]);
	free(h);
}

#define FAULTS_MAX 16

/*
 * Receives a request and keeps its descriptors. Returns false when the daemon has ended. Retries
 * after an error such as ENOMEM, because with this process all its open memories are lost.
 */
static bool receive(struct served *w, struct work *q)
{
	ssize_t n = -1;

	for (int faults = 0; n < 0 && faults < FAULTS_MAX; faults++)
		n = receive_from(w, w->sock, q, sizeof(*q), 0, &q->id);
	if (n != sizeof(*q))
		return false;
	if (q->flags & WORK_TAKE)
		take_message(w, q->id);
	return true;
}

#define OWN_SOCK 3
/* To open and write the memory of other users' processes; not to load programs, nor for events. */
#define RIGHTS (CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_DAC_OVERRIDE))

int leave_the_daemon(int sock, const char *name)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
	if (capabilities_keep(RIGHTS) < 0)
		_exit(1);
	if (sock != OWN_SOCK && dup2(sock, OWN_SOCK) < 0)
		_exit(1);
	if (close_range(OWN_SOCK + 1, UINT_MAX, 0) < 0)
		_exit(1);
	signal(SIGTERM, SIG_IGN); /* the daemon ends the worker after the last counts */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	return OWN_SOCK;
}

void worker_main(int sock, union work_area *area)
{
	struct served w = { .area = area };
	struct work q;

	w.sock = leave_the_daemon(sock, "profild-worker");
	while (receive(&w, &q))
		serve(&w, &q);
	_exit(0);
}
