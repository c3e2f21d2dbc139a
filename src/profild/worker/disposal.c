/* disposal.c - closes clients' sockets that contain unread messages, without blocking
 *
 * A message can carry a TCP socket with SO_LINGER, whose last close blocks for as long as its
 * sender chose. The last close of the socket that contains the message closes that one, too. But a
 * process that exits does not linger. So a child is forked, which has copies of the sockets; the
 * daemon closes its own, then the child exits.
 *
 * Any client can cause this as often as it connects, also beyond its limit of connections. So
 * sockets are collected: at most one child in DELAY_US, and one at a time.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "disposal.h"

#define DELAY_US 20000

struct disposal {
	sd_event *event;
	sd_event_source *timer;
	pid_t child;
	int *sock;
	unsigned int n;
	unsigned int room;
};

/* Closes all collected sockets. Returns -EAGAIN if it must be called again, for a child. */
static int dispose(struct disposal *d)
{
	int gate[2];
	char byte;

	if (d->child && waitpid(d->child, NULL, WNOHANG) == 0)
		return -EAGAIN;
	d->child = 0;
	if (!d->n)
		return 0;
	if (pipe(gate) < 0)
		return -EAGAIN;
	d->child = fork();
	if (d->child == 0) {
		close(gate[1]);
		_exit(read(gate[0], &byte, 1) != 0);
	}
	close(gate[0]);
	if (d->child < 0) {
		d->child = 0;
		close(gate[1]);
		return -EAGAIN;
	}
	while (d->n)
		close(d->sock[--d->n]);
	close(gate[1]);
	return -EAGAIN; /* to reap the child */
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
	dispose(d);
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
	if (d->n == 1 && !d->child) {
		sd_event_source_set_time_relative(d->timer, DELAY_US);
		sd_event_source_set_enabled(d->timer, SD_EVENT_ONESHOT);
	}
}
