/* daemon_call.c - requests to the daemon: connect, send, receive the answer, close */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "daemon_call.h"
#include "entry.h"
#include "process_area.h"
#include "run_notify.h"
#include "seccomp_state.h"

/*
 * The profile of a process, from the process's side.
 *
 * State: the mode, OFF or the dialect call that turned the profile on, and the number of the cookie
 * area that the daemon reads for it (process_area.h has two). Between calls nothing else exists: no
 * descriptor, no thread.
 *
 * START and EXTEND take the spare area. It gets the fresh cookie of the daemon's HELLO, and the
 * request names its address; the cookie of the profile before stays valid meanwhile, because a
 * START that fails leaves that profile on. On success the spare area becomes the running one and
 * the old one is closed. On failure the spare area is closed, because the daemon may have started
 * the profile and failed to answer. SYNC and STOP have a cookie in an area of their own (proof).
 *
 * Closing an area ends the daemon's writes without the daemon's help (proto.h, struct
 * profil_cookie_area): it clears the cookie, then waits until the busy mark is 0. Pairs with the
 * daemon, which sets the mark, then reads the cookie; both sides have a full barrier in between
 * (Dekker). Either the daemon sees the cleared cookie and writes nothing, or the process sees the
 * mark and waits for the end of that write. So a stop first sends STOP, which brings the buffer up
 * to date, and then closes the area even without an answer. If the socket cannot be reached
 * (chroot, seccomp, no free fd, another environment, a dead or frozen daemon), there is still no
 * writer after the stop.
 *
 * A daemon that is killed between setting and clearing the mark leaves it set; the wait has a limit
 * for that. The stop then returns -ETIMEDOUT, because a writer that is only suspended may still
 * finish its one write. A fork child never inherits a mark (process_area.h).
 */
#define WAIT_S 10
#define WAIT_BEFORE_FORK_S 1
#define WAIT_BUSY_S 2
#define NAP_MAX_NS 1000000
#define ATTEMPTS 4
#define ERRNO_MAX 4095
#define TICK_MAX_NS 1000000000000ull /* a reply with a longer period is refused */

static struct {
	unsigned int running; /* the number of its cookie area */
	enum request_mode mode;
	struct profil_cookie_area proof; /* of a SYNC or STOP */
} profile;

/* Atomic, because a fork handler reads it without the lock. */
enum request_mode request_mode(void)
{
	return __atomic_load_n(&profile.mode, __ATOMIC_RELAXED);
}

static void set_mode(enum request_mode mode)
{
	__atomic_store_n(&profile.mode, mode, __ATOMIC_RELAXED);
}

/* Sleeps in growing steps until @busy is 0; async-signal-safe, without a call that needs the
 * daemon. */
static int await_idle(const __u32 *busy)
{
	struct timespec nap = { .tv_nsec = 1000 }, end, now;

	if (!__atomic_load_n(busy, __ATOMIC_ACQUIRE))
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += WAIT_BUSY_S;
	while (__atomic_load_n(busy, __ATOMIC_ACQUIRE)) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > end.tv_sec ||
		    (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec))
			return -ETIMEDOUT;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
		if (nap.tv_nsec < NAP_MAX_NS)
			nap.tv_nsec *= 2;
	}
	return 0;
}

/* When this returns 0, no daemon writes to the buffers of the profile with @area any more. */
static int close_area(struct profil_cookie_area *area)
{
	for (unsigned int i = 0; i < PROFIL_COOKIE_BYTES; i++)
		__atomic_store_n(&area->cookie[i], 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return await_idle(&area->busy);
}

/* Connects. secure_getenv(): a set-id program must not trust its environment. */
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

/*
 * Receives the daemon's HELLO and stores its cookie where the request will say it is; or returns
 * REFUSED where a reply that says why there is no room for this client came in its place.
 */
#define REFUSED 1

static int hear_hello(int sock, unsigned char *cookie, struct profil_msg_reply *refusal)
{
	union {
		struct profil_header h;
		struct profil_msg_hello hello;
		struct profil_msg_reply reply;
	} m;
	int err = wire_recv(sock, &m, sizeof(m), NULL, NULL);

	if (err)
		return err;
	if (m.h.type == PROFIL_MSG_REPLY && wire_fits(&m.h, sizeof(m.reply), 1, 0) &&
	    m.reply.error && m.reply.error <= ERRNO_MAX) {
		*refusal = m.reply;
		return REFUSED;
	}
	if (m.h.type != PROFIL_MSG_HELLO || !wire_fits(&m.h, sizeof(m.hello), 1, 0))
		return -EPROTO;
	memcpy(cookie, m.hello.cookie, sizeof(m.hello.cookie));
	return 0;
}

/*
 * Sends the regions beyond the first message. Each header temporarily overwrites the end of the
 * region before it, which has been sent already; it is restored, because a request may be sent
 * twice.
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

/* Refuses replies with values outside of their range. */
static int check_reply(const struct profil_msg_reply *reply, unsigned int asked)
{
	int starts = asked == PROFIL_MSG_START || asked == PROFIL_MSG_EXTEND;

	if (reply->h.type != PROFIL_MSG_REPLY || !wire_fits(&reply->h, sizeof(*reply), 1, 0) ||
	    reply->error > ERRNO_MAX || reply->tick_ns > TICK_MAX_NS)
		return -EPROTO;
	return starts && !reply->error && !reply->tick_ns ? -EPROTO : 0;
}

/*
 * Sends the request once. Returns 0 and the reply, which may have an error; REFUSED and a reply if
 * the daemon has refused the connection before the request; or a negative errno without a reply.
 */
static int attempt(struct profil_header *h, unsigned char *cookie, struct profil_msg_reply *reply,
		   int wait_s)
{
	__cleanup(closep) int sock = -1;
	int err;

	err = dial(&sock, wait_s) ?: hear_hello(sock, cookie, reply);
	if (err == REFUSED)
		return REFUSED;
	err = err ?: wire_send(sock, h, NULL, 0);
	if (!err && h->type != PROFIL_MSG_STOP && h->type != PROFIL_MSG_SYNC)
		err = send_rest(sock, (struct profil_msg_start *)h);
	if (!err || err == -EPIPE) /* a refusal may arrive before all regions have been sent */
		err = wire_recv(sock, reply, sizeof(*reply), NULL, NULL);
	return err ? err : check_reply(reply, h->type);
}

/* Attempts after refused connections, with naps of 1 ms, 2 ms and so on: two seconds in all. */
#define REFUSALS 11

/*
 * Sends the request again if the daemon ended in between (so its restart is invisible to the
 * caller), and if it had no room for another connection of this user (connections are short). A
 * peer with another protocol or version counts as no daemon: -ENOSYS.
 */
static int ask(struct profil_header *h, unsigned char *cookie, struct profil_msg_reply *reply,
	       int wait_s)
{
	struct timespec nap = { .tv_nsec = 1000000 };
	int err = -ECONNRESET, refusals = 0;

	for (int i = 0; i < ATTEMPTS && (err == -ECONNRESET || err == -ENODATA || err == -EPIPE);
	     i++) {
		while ((err = attempt(h, cookie, reply, wait_s)) == REFUSED) {
			if (refusals++ == REFUSALS)
				return -(int)reply->error;
			clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
			nap.tv_nsec *= 2;
		}
	}
	if (err == -EAGAIN)
		return -ETIMEDOUT;
	if (err == -ENODATA || err == -EPIPE)
		return -ECONNRESET;
	if (err == -EPROTO)
		return -ENOSYS;
	return err ? err : -(int)reply->error;
}

/* START or EXTEND; see the overview at the top for the two areas. */
static int put_profile(unsigned int type, struct profil_msg_start *m,
		       struct profil_msg_reply *reply)
{
	unsigned int first =
		m->nregions < PROFIL_MSG_REGION_MAX ? m->nregions : PROFIL_MSG_REGION_MAX;
	struct profil_cookie_area *old = process_area(profile.running);
	struct profil_cookie_area *spare = process_area(!profile.running);
	int err;

	/* Only a killed daemon can have left it set: close_area() has waited for any other. */
	__atomic_store_n(&spare->busy, 0, __ATOMIC_RELAXED);
	wire_header(&m->h, type, sizeof(*m), sizeof(m->region[0]), first);
	m->cookie_addr = (unsigned long)spare;
	err = ask(&m->h, spare->cookie, reply, WAIT_S);
	if (!err) {
		profile.running = !profile.running;
		seccomp_note();
		run_profile();
	}
	close_area(err ? spare : old);
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

	if (err == -ESRCH) {
		close_area(process_area(profile.running));
		set_mode(REQUEST_OFF);
	}
	return err;
}

int request_start_one(const struct dialect *d, const struct profil_xform *x, const void *buf,
		      enum request_mode mode, struct profil_msg_reply *reply)
{
	struct profil_msg_reply unused;
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
	return request_start(&m.start, mode, reply ? reply : &unused);
}

/* SYNC or STOP. */
static int request_self(unsigned int type, struct profil_msg_reply *reply, int wait_s)
{
	struct profil_msg_self m = { .cookie_addr = (unsigned long)&profile.proof };

	wire_header(&m.h, type, sizeof(m), 1, 0);
	return ask(&m.h, profile.proof.cookie, reply, wait_s);
}

int request_stop(struct profil_msg_reply *reply)
{
	if (request_self(PROFIL_MSG_STOP, reply, WAIT_S))
		*reply = (struct profil_msg_reply){ 0 };
	set_mode(REQUEST_OFF);
	return close_area(process_area(profile.running));
}

int request_sync(struct profil_msg_reply *reply)
{
	return request_self(PROFIL_MSG_SYNC, reply, WAIT_S);
}

/* Gets STATUS into @status, which has PROFIL_MSG_MAX bytes: the message has a variable part. */
static int ask_status(struct profil_msg_status *status)
{
	__cleanup(closep) int sock = -1;
	struct profil_msg_reply refusal = { 0 };
	struct profil_header ask;
	int err = dial(&sock, WAIT_S);

	if (err)
		return err;
	wire_header(&ask, PROFIL_MSG_STATUS, sizeof(ask), 0, 0);
	err = hear_hello(sock, profile.proof.cookie, &refusal);
	if (err == REFUSED)
		return -(int)refusal.error;
	err = err
		      ?: wire_send(sock, &ask, NULL, 0)
		      ?: wire_recv(sock, status, PROFIL_MSG_MAX, NULL, NULL);
	if (err)
		return err;
	if (status->h.type != PROFIL_MSG_STATUS || status->h.bytes < sizeof(*status) ||
	    !status->rate_period_ns || status->rate_period_ns > TICK_MAX_NS)
		return -EPROTO;
	return 0;
}

int request_period(__u64 *period_ns)
{
	struct profil_msg_status *status = call_alloc(PROFIL_MSG_MAX);
	int err = status ? ask_status(status) : -ENOMEM;

	if (!err)
		*period_ns = status->rate_period_ns;
	call_free(status, PROFIL_MSG_MAX);
	return err;
}

void request_sync_before_fork(void)
{
	struct profil_msg_reply reply;

	request_self(PROFIL_MSG_SYNC, &reply, WAIT_BEFORE_FORK_S);
}
