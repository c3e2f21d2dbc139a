/* reader.c - a reader's connection to the daemon: requests, and the events that come unasked */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/scope.h"
#include "core/wire.h"

#include "reader.h"

#define READER_TIMEOUT_MS 10000

struct reader {
	int sock;
	struct profil_msg_event *events; /* a queue: events[first] to events[n - 1] */
	size_t first;
	size_t n;
	size_t room;
	union {
		struct profil_header h;
		struct profil_msg_reply reply;
		struct profil_msg_events events;
		char space[PROFIL_MSG_MAX];
	} in;
};

/* Waits until the daemon is ready for @events. */
static int wait_for(const struct reader *r, short events)
{
	struct pollfd p = { .fd = r->sock, .events = events };
	int n;

	do {
		n = poll(&p, 1, READER_TIMEOUT_MS);
	} while (n < 0 && errno == EINTR);
	return n > 0 ? 0 : n ? -errno : -ETIMEDOUT;
}

/* Puts the events of the message that has come behind the others. */
static int queue(struct reader *r)
{
	const struct profil_msg_events *m = &r->in.events;

	if (!wire_fits(&m->h, sizeof(*m), sizeof(m->event[0]), PROFIL_MSG_MAX))
		return -EPROTO;
	if (r->first) {
		r->n -= r->first;
		memmove(r->events, r->events + r->first, r->n * sizeof(*r->events));
		r->first = 0;
	}
	if (r->n + m->h.count > r->room) {
		size_t room = 2 * (r->n + m->h.count);
		void *more = reallocarray(r->events, room, sizeof(*r->events));

		if (!more)
			return -ENOMEM;
		r->events = more;
		r->room = room;
	}
	memcpy(r->events + r->n, m->event, m->h.count * sizeof(m->event[0]));
	r->n += m->h.count;
	return 0;
}

/* Receives a message; events are queued. Returns its type, or a negative errno: -EAGAIN: none. */
static int take(struct reader *r, int *fds, unsigned int *nfds)
{
	int err;

	err = wire_recv(r->sock, &r->in, sizeof(r->in), fds, nfds);
	if (err == -ECONNRESET || err == -EPIPE)
		return -ENODATA;
	if (!err && r->in.h.type == PROFIL_MSG_EVENTS)
		err = queue(r);
	return err ? err : r->in.h.type;
}

int reader_pump(struct reader *r)
{
	int type;

	do {
		type = take(r, NULL, NULL);
	} while (type == PROFIL_MSG_EVENTS);
	return type == -EAGAIN ? 0 : type < 0 ? type : -EPROTO;
}

bool reader_next(struct reader *r, struct profil_msg_event *event)
{
	if (r->first == r->n)
		return false;
	*event = r->events[r->first++];
	return true;
}

static int send_all(struct reader *r, const struct profil_header *h, const int *fds,
		    unsigned int nfds)
{
	int err;

	while ((err = wire_send(r->sock, h, fds, nfds)) == -EAGAIN) {
		err = wait_for(r, POLLOUT);
		if (err < 0)
			return err;
	}
	return err == -EPIPE || err == -ECONNRESET ? -ENODATA : err;
}

/* Waits for the one message that is no event; *@nfds and @fds as in wire_recv(). */
static int await(struct reader *r, int *fds, unsigned int *nfds)
{
	unsigned int room = nfds ? *nfds : 0;

	for (;;) {
		int type;

		if (nfds)
			*nfds = room;
		type = take(r, fds, nfds);
		if (type == -EAGAIN)
			type = wait_for(r, POLLIN);
		else if (type != PROFIL_MSG_EVENTS)
			return type;
		if (type < 0)
			return type;
	}
}

static int await_reply(struct reader *r, struct profil_msg_reply *reply, int *fds,
		       unsigned int *nfds)
{
	int type = await(r, fds, nfds);

	if (type < 0)
		return type;
	if (type != PROFIL_MSG_REPLY || r->in.h.bytes != sizeof(*reply) || r->in.reply.error > 4095)
		return -EPROTO;
	*reply = r->in.reply;
	return -(int)reply->error;
}

int reader_open(struct reader **out, const char *path)
{
	struct sockaddr_un address;
	struct reader *r;
	int err;

	err = wire_address(&address, path);
	if (err < 0)
		return err;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (r->sock < 0 || connect(r->sock, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    fcntl(r->sock, F_SETFL, O_NONBLOCK) < 0)
		err = -errno;
	if (!err)
		err = await(r, NULL, NULL);
	/* On whom it has no room for profild hangs up without a word. */
	if (err == -ENODATA)
		err = -EAGAIN;
	else if (err >= 0 && err != PROFIL_MSG_HELLO)
		err = -EPROTO;
	if (err < 0) {
		reader_close(r);
		return err;
	}
	*out = r;
	return 0;
}

void reader_close(struct reader *r)
{
	if (!r)
		return;
	closep(&r->sock);
	free(r->events);
	free(r);
}

int reader_fd(const struct reader *r)
{
	return r->sock;
}

int reader_attach(struct reader *r, int pidfd, int maps, __u64 period_ns, __u32 flags,
		  struct profil_msg_reply *reply)
{
	struct profil_msg_attach m = { .period_ns = period_ns, .flags = flags };
	int fds[] = { pidfd, maps };
	int err;

	wire_header(&m.h, PROFIL_MSG_ATTACH, sizeof(m), 0, 0);
	err = send_all(r, &m.h, fds, 2);
	return err ? err : await_reply(r, reply, NULL, NULL);
}

static int ask_totals(struct reader *r, unsigned int type, struct profil_msg_reply *reply)
{
	struct profil_header h;
	int err;

	wire_header(&h, type, sizeof(h), 0, 0);
	err = send_all(r, &h, NULL, 0);
	return err ? err : await_reply(r, reply, NULL, NULL);
}

int reader_detach(struct reader *r, struct profil_msg_reply *reply)
{
	return ask_totals(r, PROFIL_MSG_DETACH, reply);
}

int reader_stats(struct reader *r, struct profil_msg_reply *reply)
{
	return ask_totals(r, PROFIL_MSG_STATS, reply);
}

static unsigned int at_most(unsigned int n)
{
	return n < PROFIL_MSG_REGION_MAX ? n : PROFIL_MSG_REGION_MAX;
}

/* Sends the regions that the IMAGE had no room for. */
static int send_more(struct reader *r, const struct profil_msg_region *regions, unsigned int n,
		     struct profil_msg_regions *m)
{
	int err = 0;

	while (n && !err) {
		unsigned int now = at_most(n);

		wire_header(&m->h, PROFIL_MSG_REGIONS, sizeof(*m), sizeof(*regions), now);
		memcpy(m->region, regions, now * sizeof(*regions));
		err = send_all(r, &m->h, NULL, 0);
		regions += now;
		n -= now;
	}
	return err;
}

int reader_image(struct reader *r, __u32 tgid, __u16 execs, const struct profil_msg_region *regions,
		 unsigned int nregions, int *fds, unsigned int *nfds)
{
	__cleanup(freep) struct profil_msg_image *m = malloc(PROFIL_MSG_MAX);
	unsigned int now = at_most(nregions);
	struct profil_msg_reply reply;
	int err;

	if (!m)
		return -ENOMEM;
	*m = (struct profil_msg_image){ .tgid = tgid, .execs = execs, .nregions = nregions };
	wire_header(&m->h, PROFIL_MSG_IMAGE, sizeof(*m), sizeof(*regions), now);
	memcpy(m->region, regions, now * sizeof(*regions));
	err = send_all(r, &m->h, NULL, 0);
	if (!err)
		err = send_more(r, regions + now, nregions - now, (struct profil_msg_regions *)m);
	if (err < 0)
		return err;
	err = await_reply(r, &reply, fds, nfds);
	while (err < 0 && *nfds)
		close(fds[--*nfds]);
	return err;
}

int reader_ask(struct reader *r, unsigned int type, const struct profil_header **answer)
{
	struct profil_header h;
	int err;

	wire_header(&h, type, sizeof(h), 0, 0);
	err = send_all(r, &h, NULL, 0);
	if (!err)
		err = await(r, NULL, NULL);
	if (err < 0)
		return err;
	if (err == PROFIL_MSG_REPLY && r->in.reply.error)
		return -(int)r->in.reply.error;
	*answer = &r->in.h;
	return err == (int)type ? 0 : -EPROTO;
}
