/* machine.c - the profile of the whole machine, which belongs to no connection */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "machine.h"
#include "table.h"

/*
 * 16 MiB of places, half of which a day on two busy CPUs fills, and 4096 images. Each command and
 * cgroup has one sum for each image (PROFIL_GROUP_SUMS), because groups times places would grow
 * with every process.
 */
#define MACHINE_PLACES (1u << 20)
#define MACHINE_IMAGES 4096
#define MACHINE_GROUPS 4096

/*
 * Users can fill images and groups with programs and names that they make up, in seconds, and a
 * machine's own fill the places in weeks. The table is then replaced: what it counted is gone,
 * except where profil-http or a spool has read it.
 */
#define LOOK_US 10000000

static int look(sd_event_source *timer, uint64_t usec, void *userdata);

/* Without the timer a full table stays. */
static void look_later(struct profild *d)
{
	int err = d->machine_timer
			  ? sd_event_source_set_time_relative(d->machine_timer, LOOK_US)
			  : sd_event_add_time_relative(d->event, &d->machine_timer, CLOCK_MONOTONIC,
						       LOOK_US, 0, look, d);

	if (err >= 0)
		sd_event_source_set_enabled(d->machine_timer, SD_EVENT_ONESHOT);
}

/* Begins a profile and ends the former one. If it cannot begin, the former one continues. */
static int start(struct profild *d, uint64_t period_ns, bool found)
{
	struct profil_msg_observe m = { .scope = PROFIL_SCOPE_MACHINE,
					.group_by = PROFIL_GROUP_COMMAND | PROFIL_GROUP_CGROUP |
						    PROFIL_GROUP_SUMS,
					.places = MACHINE_PLACES,
					.images = MACHINE_IMAGES,
					.groups = MACHINE_GROUPS,
					.period_ns = period_ns };
	struct observer_peer self = { .privileged = true, .machine = true, .found = found };
	struct attachment *former = d->machine;
	int err = observer_peer_of(&self, getpid());

	if (!err)
		err = user_get(&self.user, d->quota, 0, true);
	if (!err)
		err = attachment_open(&d->machine, d, &m, &self);
	user_unref(self.user);
	if (err)
		return err;
	attachment_close(former);
	look_later(d);
	return 0;
}

static void replace(struct profild *d, const struct profil_table *t)
{
	int err = start(d, d->machine->period_ns, false);

	if (err)
		log_err("the machine's profile cannot begin anew: %s; it is tried again",
			strerror(-err));
	else
		log_notice("the machine's profile begins anew: its table filled up, with %llu "
			   "places, %u files and %u commands",
			   t->used_places, t->used_images, t->used_groups);
}

static int look(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct profild *d = userdata;
	struct profil_table t;

	(void)timer;
	(void)usec;
	if (!d->machine)
		return 0;
	if (!table_read(&t, d->machine->table) && profil_table_fills_up(&t))
		replace(d, &t);
	look_later(d);
	return 0;
}

static uint64_t usual_period_ns(const struct profild *d)
{
	return d->config.machine_period_ns ? d->config.machine_period_ns : d->config.period_ns;
}

int machine_on(struct profild *d, uint64_t period_ns)
{
	if (d->machine && (!period_ns || period_ns == d->machine->period_ns))
		return 0;
	return start(d, period_ns ? period_ns : usual_period_ns(d), false);
}

void machine_off(struct profild *d)
{
	d->machine = attachment_close(d->machine);
}

/* A table has one rate: another would discard what an earlier daemon counted. */
static void tell_continued(const struct profild *d)
{
	uint64_t usual_ns = usual_period_ns(d);

	log_notice("the machine's profile continues");
	if (d->config.machine && d->machine->period_ns != usual_ns)
		log_warning("--machine: the profile continues at %.0f Hz instead of %.0f Hz; "
			    "'profilctl machine off', then 'on', starts it anew",
			    1e9 / (double)d->machine->period_ns, 1e9 / (double)usual_ns);
}

void machine_open(struct profild *d)
{
	int err = d->places ? start(d, 0, true) : -ENOENT;

	if (!err)
		tell_continued(d);
	else if (err != -ENOENT)
		log_warning("cannot continue the machine's profile of an earlier daemon: %s",
			    strerror(-err));
	if (!err || !d->config.machine)
		return;
	err = d->places ? machine_on(d, 0) : -EOPNOTSUPP;
	if (err)
		log_err("--machine: cannot profile the machine: %s", strerror(-err));
}

void machine_close(struct profild *d, bool keeps)
{
	if (d->machine && keeps)
		d->machine = attachment_forget(d->machine);
	else
		machine_off(d);
	d->machine_timer = sd_event_source_unref(d->machine_timer);
}
