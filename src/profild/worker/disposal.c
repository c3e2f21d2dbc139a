/* disposal.c - closes clients' sockets that contain unread messages, without blocking
 *
 * A message can carry a TCP socket with SO_LINGER, whose last close blocks for as long as its
 * sender chose. The last close of the socket that contains the message closes that one, too. But a
 * process that exits does not linger. So a worker gets copies of the sockets; the daemon closes its
 * own, and the worker exits.
 *
 * Any client can cause this as often as it connects, also beyond its limit of connections. So
 * sockets are collected: at most one worker in DELAY_US, and one at a time. The daemon does not
 * fork one itself: see spawner.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "disposal.h"
#include "spawner.h"
#include "worker.h"

#define DELAY_US 20000

struct disposal {
	sd_event *event;
	sd_event_source *timer;
	struct worker *worker; /* NULL: none is asked for */
	bool told;	       /* to exit */
	int *sock;
	unsigned int n;
	unsigned int room;
};

/* Sends all collected sockets to the worker, and tells it to exit. Returns 0 or -EAGAIN. */
static int send_all(struct disposal *d)
{
	while (d->n) {
		unsigned int n = d->n < PROFIL_MSG_FDS ? d->n : PROFIL_MSG_FDS;
		const struct work w = { .kind = n == d->n ? WORK_EXIT : WORK_HOLD };

		if (worker_send(d->worker, &w, d->sock + d->n - n, n))
			return -EAGAIN;
		while (n--)
			close(d->sock[--d->n]);
	}
	d->told = true;
	return 0;
}

/* Does the next step. Returns -EAGAIN if it must be called again. */
static int dispose(struct disposal *d)
{
	if (d->worker && !worker_is_alive(d->worker)) {
		worker_close(d->worker);
		d->worker = NULL;
		d->told = false;
	}
	if (!d->worker && !d->n)
		return 0;
	if (!d->worker)
		worker_new(&d->worker, ACCOUNT_OF_DAEMON, d->event);
	else if (!d->told && worker_is_born(d->worker))
		send_all(d);
	return -EAGAIN;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	if (dispose(userdata) && (sd_event_source_set_time_relative(source, DELAY_US) < 0 ||
				  sd_event_source_set_enabled(source, SD_EVENT_ONESHOT) < 0))
		log_warning("cannot set a timer: sockets of closed connections stay open");
	return 0;
}

int disposal_open(struct disposal **out, sd_event *event)
{
	struct disposal *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->event = event;
	err = sd_event_add_time(event, &d->timer, CLOCK_MONOTONIC, 0, DELAY_US / 4, on_timer, d);
	if (err >= 0)
		err = sd_event_source_set_enabled(d->timer, SD_EVENT_OFF);
	if (err < 0) {
		disposal_close(d);
		return err;
	}
	*out = d;
	return 0;
}

struct disposal *disposal_close(struct disposal *d)
{
	if (!d)
		return NULL;
	sd_event_source_disable_unref(d->timer);
	free(d->sock);
	free(d);
	return NULL;
}

void disposal_add(struct disposal *d, int sock)
{
	if (d->n == d->room) {
		unsigned int room = d->room ? 2 * d->room : 16;
		int *more = reallocarray(d->sock, room, sizeof(*more));

		if (!more)
			return; /* a leaked fd does less harm than a blocked main thread */
		d->sock = more;
		d->room = room;
	}
	d->sock[d->n++] = sock;
	if (d->n == 1 && !d->worker) {
		sd_event_source_set_time_relative(d->timer, DELAY_US);
		sd_event_source_set_enabled(d->timer, SD_EVENT_ONESHOT);
	}
}
