/* request.c - one call to the daemon: connect, ask, be answered, hang up */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "core/scope.h"
#include "core/wire.h"
#include "request.h"

#define WAIT_S 10
#define WAIT_BEFORE_FORK_S 1
#define ATTEMPTS 4

/*
 * The daemon's proof that this memory is ours. A later daemon, and one that finds a fork child,
 * reads the running profile's cookie again: it must stay as it is, so the next request uses the
 * other slot.
 */
static struct {
	unsigned char cookie[2][PROFIL_COOKIE_BYTES];
	unsigned int running;
	enum request_mode mode;
} profile;

/* A fork looks before it knows whether it has to wait for another thread's call. */
enum request_mode request_mode(void)
{
	return __atomic_load_n(&profile.mode, __ATOMIC_RELAXED);
}

static void set_mode(enum request_mode mode)
{
	__atomic_store_n(&profile.mode, mode, __ATOMIC_RELAXED);
}

static unsigned char *spare_cookie(void)
{
	return profile.cookie[!profile.running];
}

/* A set-id program takes no path from its caller. */
static int dial(int *out, int wait_s)
{
	const char *path = secure_getenv(PROFIL_SOCKET_ENV);
	struct timeval most = { .tv_sec = wait_s };
	__cleanup(closep) int sock = -1;
	struct sockaddr_un address;

	if (wire_address(&address, path && *path ? path : PROFIL_SOCKET_DEFAULT))
		return -ENOSYS;
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : -ENOSYS;
	if (setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) < 0 ||
	    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) < 0)
		return -errno;
	if (connect(sock, (struct sockaddr *)&address, sizeof(address)) < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -ENOSYS;

	*out = steal_fd(sock);
	return 0;
}

/* The daemon's first word; its cookie goes where our request will name it. */
static int hear_hello(int sock)
{
	struct profil_msg_hello hello;
	int err = wire_recv(sock, &hello, sizeof(hello), NULL, NULL);

	if (err)
		return err;
	if (hello.h.type != PROFIL_MSG_HELLO || !wire_fits(&hello.h, sizeof(hello), 1, 0))
		return -EPROTO;
	memcpy(spare_cookie(), hello.cookie, sizeof(hello.cookie));
	return 0;
}

/*
 * The regions that the first message has no room for. Each header lies over the end of the region
 * before, which has gone out already, and is taken away again: a request may be sent once more.
 */
static int send_rest(int sock, struct profil_msg_start *m)
{
	for (unsigned int done = m->h.count; done < m->nregions; done += PROFIL_MSG_REGION_MAX) {
		unsigned int left = m->nregions - done;
		struct profil_header *h = (struct profil_header *)&m->region[done] - 1;
		struct profil_header under = *h;
		int err;

		wire_header(h, PROFIL_MSG_REGIONS, sizeof(*h), sizeof(m->region[0]),
			    left < PROFIL_MSG_REGION_MAX ? left : PROFIL_MSG_REGION_MAX);
		err = wire_send(sock, h, NULL, 0);
		*h = under;
		if (err)
			return err;
	}
	return 0;
}

/* Asks once. Returns 0 with a reply, be it a refusal, or why there is none. */
static int attempt(struct profil_header *h, struct profil_msg_reply *reply, int wait_s)
{
	__cleanup(closep) int sock = -1;
	int err;

	err = dial(&sock, wait_s);
	if (!err)
		err = hear_hello(sock);
	if (!err)
		err = wire_send(sock, h, NULL, 0);
	if (!err && h->type != PROFIL_MSG_STOP && h->type != PROFIL_MSG_SYNC)
		err = send_rest(sock, (struct profil_msg_start *)h);
	if (!err || err == -EPIPE) /* a refusal may have come before all was said */
		err = wire_recv(sock, reply, sizeof(*reply), NULL, NULL);
	if (err)
		return err;
	if (reply->h.type != PROFIL_MSG_REPLY || !wire_fits(&reply->h, sizeof(*reply), 1, 0))
		return -EPROTO;
	return 0;
}

/* A daemon that went away while it was asked may be back: a restart costs the caller nothing. */
static int ask(struct profil_header *h, struct profil_msg_reply *reply, int wait_s)
{
	int err = -ECONNRESET;

	for (int i = 0; i < ATTEMPTS && (err == -ECONNRESET || err == -ENODATA || err == -EPIPE);
	     i++)
		err = attempt(h, reply, wait_s);
	if (err == -EAGAIN)
		return -ETIMEDOUT;
	if (err == -ENODATA || err == -EPIPE)
		return -ECONNRESET;
	return err ? err : -(int)reply->error;
}

/*
 * A START or EXTEND. Its cookie is the running profile's from now on; if it fails, nobody's: a
 * daemon that has begun it, and could not say so, must not go on with it.
 */
static int put_profile(unsigned int type, struct profil_msg_start *m,
		       struct profil_msg_reply *reply)
{
	unsigned int first =
		m->nregions < PROFIL_MSG_REGION_MAX ? m->nregions : PROFIL_MSG_REGION_MAX;
	int err;

	wire_header(&m->h, type, sizeof(*m), sizeof(m->region[0]), first);
	m->cookie_addr = (unsigned long)spare_cookie();
	err = ask(&m->h, reply, WAIT_S);
	if (err)
		memset(spare_cookie(), 0, PROFIL_COOKIE_BYTES);
	else
		profile.running = !profile.running;
	return err;
}

int request_start(struct profil_msg_start *m, enum request_mode mode,
		  struct profil_msg_reply *reply)
{
	int err = put_profile(PROFIL_MSG_START, m, reply);

	if (!err)
		set_mode(mode);
	return err;
}

int request_extend(struct profil_msg_start *m, struct profil_msg_reply *reply)
{
	int err = put_profile(PROFIL_MSG_EXTEND, m, reply);

	if (err == -ESRCH)
		set_mode(REQUEST_OFF);
	return err;
}

int request_start_one(const struct dialect *d, const struct profil_xform *x, const void *buf,
		      enum request_mode mode, struct profil_msg_reply *reply)
{
	struct profil_msg_reply unheard;
	union {
		struct profil_msg_start start;
		char space[sizeof(struct profil_msg_start) + sizeof(struct profil_msg_region)];
	} m = { .start = { .flags = d->flags, .width = d->width, .cap = d->cap } };

	if (x->span) {
		m.start.nregions = 1;
		m.start.region[0] = (struct profil_msg_region){ .lo = x->base,
								.x = *x,
								.addr = (unsigned long)buf };
	}
	return request_start(&m.start, mode, reply ? reply : &unheard);
}

/* Puts what the calling process says of itself. */
static int request_self(unsigned int type, struct profil_msg_reply *reply, int wait_s)
{
	struct profil_msg_self m = { .cookie_addr = (unsigned long)spare_cookie() };

	wire_header(&m.h, type, sizeof(m), 1, 0);
	return ask(&m.h, reply, wait_s);
}

int request_stop(struct profil_msg_reply *reply)
{
	int err = request_self(PROFIL_MSG_STOP, reply, WAIT_S);

	if (err && err != -ENOSYS)
		return err;
	if (err)
		*reply = (struct profil_msg_reply){ 0 };
	/* A daemon that comes back must not find a profile to go on with. */
	memset(profile.cookie[profile.running], 0, PROFIL_COOKIE_BYTES);
	set_mode(REQUEST_OFF);
	return 0;
}

int request_sync(struct profil_msg_reply *reply)
{
	return request_self(PROFIL_MSG_SYNC, reply, WAIT_S);
}

void request_sync_before_fork(void)
{
	struct profil_msg_reply reply;

	request_self(PROFIL_MSG_SYNC, &reply, WAIT_BEFORE_FORK_S);
}
