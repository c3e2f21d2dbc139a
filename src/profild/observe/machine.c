/* machine.c - the profile of the whole machine, which belongs to no connection */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "interpreters.h"
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

#define READY_US 1000

static void call_later(struct profild *d, sd_event_source **timer, uint64_t us,
		       sd_event_time_handler_t fn)
{
	int err =
		*timer ? sd_event_source_set_time_relative(*timer, us)
		       : sd_event_add_time_relative(d->event, timer, CLOCK_MONOTONIC, us, 0, fn, d);

	if (err >= 0)
		err = sd_event_source_set_enabled(*timer, SD_EVENT_ONESHOT);
	if (err < 0)
		log_err("the machine's profile: no timer: %s", strerror(-err));
}

static int begin_next(struct profild *d, uint64_t period_ns, bool at_once, bool found);

static int look(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct profild *d = userdata;
	struct profil_table t;
	int err;

	if (!d->machine)
		return 0;
	if (!d->machine_next && !table_read(&t, d->machine->table) && profil_table_fills_up(&t)) {
		err = begin_next(d, d->machine->period_ns, false, false);
		if (err)
			log_err("the machine's profile cannot begin anew: %s; it is tried again",
				strerror(-err));
	}
	call_later(d, &d->machine_timer, LOOK_US, look);
	return 0;
}

/* The next profile counts from here on; the former one ends. */
static void switch_over(struct profild *d)
{
	struct attachment *former = d->machine;
	struct profil_table t;

	d->machine = d->machine_next;
	d->machine_next = NULL;
	if (former && !table_read(&t, former->table) && profil_table_fills_up(&t))
		log_notice("the machine's profile begins anew: its table filled up, with %llu "
			   "places, %u files and %u commands",
			   t.used_places, t.used_images, t.used_groups);
	attachment_close(former);
	call_later(d, &d->machine_timer, LOOK_US, look);
}

static int on_next(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct profild *d = userdata;
	int err;

	if (!d->machine_next)
		return 0;
	err = attachment_ready(d->machine_next);
	if (err == -EINPROGRESS) {
		call_later(d, &d->machine_ready, READY_US, on_next);
		return 0;
	}
	if (!err)
		err = attachment_begin(d->machine_next);
	if (!err) {
		switch_over(d);
		return 0;
	}
	log_err("the machine's profile cannot begin%s: %s", d->machine ? " anew" : "",
		strerror(-err));
	d->machine_next = attachment_close(d->machine_next);
	return 0;
}

/*
 * Prepares a profile, which counts as soon as its table is in its slot, some milliseconds later.
 * The one that counts now continues until then, also if this fails.
 */
static int begin_next(struct profild *d, uint64_t period_ns, bool at_once, bool found)
{
	struct profil_msg_observe m = { .scope = PROFIL_SCOPE_MACHINE,
					.flags = PROFIL_OBSERVE_LATER,
					.group_by = PROFIL_GROUP_COMMAND | PROFIL_GROUP_CGROUP |
						    PROFIL_GROUP_SUMS,
					.places = MACHINE_PLACES,
					.images = MACHINE_IMAGES,
					.groups = MACHINE_GROUPS,
					.period_ns = period_ns };
	struct observer_peer self = {
		.privileged = true, .machine = true, .at_once = at_once, .found = found
	};
	int err = observer_peer_of(&self, getpid());

	if (interpreters_installed())
		m.flags |= PROFIL_OBSERVE_FUNCTIONS;

	d->machine_next = attachment_close(d->machine_next);
	if (!err)
		err = user_get(&self.user, d->quota, 0, true);
	if (!err)
		err = attachment_open(&d->machine_next, d, &m, &self);
	user_unref(self.user);
	if (!err)
		call_later(d, &d->machine_ready, READY_US, on_next);
	return err;
}

static uint64_t usual_period_ns(const struct profild *d)
{
	return d->config.machine_period_ns ? d->config.machine_period_ns : d->config.period_ns;
}

const struct attachment *machine_newest(const struct profild *d)
{
	return d->machine_next ? d->machine_next : d->machine;
}

int machine_on(struct profild *d, uint64_t period_ns)
{
	const struct attachment *newest = machine_newest(d);

	if (newest && (!period_ns || period_ns == newest->period_ns))
		return 0;
	return begin_next(d, period_ns ? period_ns : usual_period_ns(d), true, false);
}

void machine_off(struct profild *d)
{
	d->machine = attachment_close(d->machine);
	d->machine_next = attachment_close(d->machine_next);
}

/* A table has one rate: another would discard what an earlier daemon counted. */
static void tell_continued(const struct profild *d)
{
	uint64_t usual_ns = usual_period_ns(d), period_ns = machine_newest(d)->period_ns;

	log_notice("the machine's profile continues");
	if (d->config.machine && period_ns != usual_ns)
		log_warning("--machine: the profile continues at %.0f Hz instead of %.0f Hz; "
			    "'profilctl machine off', then 'on', starts it anew",
			    1e9 / (double)period_ns, 1e9 / (double)usual_ns);
}

void machine_open(struct profild *d)
{
	int err = d->places ? begin_next(d, 0, true, true) : -ENOENT;

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
	if (keeps && !d->machine) {
		d->machine = d->machine_next;
		d->machine_next = NULL;
	}
	if (d->machine && keeps)
		d->machine = attachment_forget(d->machine);
	machine_off(d);
	d->machine_timer = sd_event_source_unref(d->machine_timer);
	d->machine_ready = sd_event_source_unref(d->machine_ready);
}
