/* event_links.h - links from observed events (other than CPU time) to the BPF programs */
#ifndef PROFIL_PROFILD_CLOCK_EVENT_LINKS_H
#define PROFIL_PROFILD_CLOCK_EVENT_LINKS_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "core/shared_maps.h"

struct event_links;
struct late_programs;

/* The event that an attachment samples. No padding, because it is compared by memcmp(). */
struct event_choice {
	uint64_t config; /* as in perf_event_attr, like type */
	uint64_t period; /* events for each sample */
	uint32_t type;
	uint32_t frequency; /* not 0: samples in a second on each CPU, instead of period */
	uint32_t limit_hz;  /* not 0: upper bound of samples in a second on each CPU */
	uint32_t wanted;    /* 0: no event; the attachment uses a clock */
};

/*
 * Checks @c: -EINVAL; -EOPNOTSUPP for an event that cannot be observed; -EACCES for a tracepoint if
 * the caller is not @privileged, because a tracepoint reveals more than the caller's own processes.
 */
int event_choice_check(const struct event_choice *c, bool privileged);

/*
 * Links nothing yet. @programs stays the caller's. tables->events is the number of choices that
 * have links: the programs look for events only while it is not 0. Off-CPU time is an event without
 * samples of its own: targets say which waits they count.
 */
int event_links_open(struct event_links **out, struct late_programs *programs,
		     struct profil_tables *tables, sd_event *event);
struct event_links *event_links_close(struct event_links *e);

/*
 * Has the program of @c loaded. Returns 0 when event_links_use() finds it there, -EINPROGRESS while
 * a thread loads it, or a negative errno.
 */
int event_links_prepare(struct event_links *e, const struct event_choice *c);

/*
 * Adds or removes a target that samples @c. Targets with equal choices share links. Sets the
 * event's number in the target's *@flags. Returns 0 or a negative errno: -EOPNOTSUPP if this
 * machine has no such event, -EAGAIN if too many events are in use.
 */
int event_links_use(struct event_links *e, const struct event_choice *c, uint32_t *flags);
void event_links_unuse(struct event_links *e, uint32_t flags);

#endif
