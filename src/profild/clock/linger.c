/* linger.c - a delay of one second before something unused is given up */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "linger.h"

#define LINGER_US 1000000

struct linger {
	sd_event_source *timer;
	bool pending;
	void (*over)(void *arg);
	void *arg;
};

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct linger *l = userdata;

	l->pending = false;
	l->over(l->arg);
	return 0;
}

int linger_open(struct linger **out, sd_event *event, void (*over)(void *arg), void *arg)
{
	struct linger *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->over = over;
	l->arg = arg;
	err = sd_event_add_time_relative(event, &l->timer, CLOCK_MONOTONIC, LINGER_US,
					 LINGER_US / 10, on_timer, l);
	if (err >= 0)
		err = sd_event_source_set_enabled(l->timer, SD_EVENT_OFF);
	if (err < 0) {
		linger_close(l);
		return err;
	}
	*out = l;
	return 0;
}

struct linger *linger_close(struct linger *l)
{
	if (!l)
		return NULL;
	sd_event_source_unref(l->timer);
	free(l);
	return NULL;
}

void linger_begin(struct linger *l)
{
	if (l->pending)
		return;
	sd_event_source_set_time_relative(l->timer, LINGER_US);
	l->pending = sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT) >= 0;
	if (!l->pending)
		l->over(l->arg);
}
