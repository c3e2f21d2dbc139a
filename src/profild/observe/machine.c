/* machine.c - the profile of the whole machine, which belongs to no connection */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clocks.h"
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
 * With stacks, 8 MiB of nodes and 32 MiB of unwind rows: less than 64 MiB in all. The programs that
 * a server runs have about 2 million rows.
 */
#define MACHINE_NODES (1u << 18)
#define MACHINE_UNWIND_ROWS (1u << 22)

/*
 * A machine's own programs fill images, groups and places in weeks. The table is then replaced: what
 * it counted is gone, except where profil-http or a spool has read it. A user can make up programs
 * and names, and fill its share of the table (bpf/share.bpf.h) in seconds. Its further ones are
 * counted without a name until the table is replaced, which other users notice: not more often than
 * after AGE_NS.
 */
#define LOOK_US 10000000
#define AGE_NS 600000000000ull

/* Processes of a user can fill the tree in some seconds: its coldest nodes are then freed. */
#define LOOK_STACKS_US 1000000

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

/* How a profile begins. */
struct beginning {
	uint64_t period_ns;
	uint32_t stack_mode;
	bool at_once;
	bool found; /* continues with the table of an earlier daemon */
};

static int begin_next(struct profild *d, const struct beginning *b);

static void call_look(struct profild *d);

static bool is_used_up(const struct profil_table *t)
{
	return profil_table_fills_up(t) || ((t->group_full || t->image_full) &&
					    clock_ns(CLOCK_BOOTTIME) - t->started_ns > AGE_NS);
}

static int look(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct profild *d = userdata;
	struct profil_table t;
	int err;

	if (!d->machine)
		return 0;
	err = d->machine_next ? -EBUSY : table_read(&t, d->machine->table);
	if (!err && profil_tree_fills_up(&t) && d->places->ops->fold)
		d->places->ops->fold(d->places, d->machine);
	if (!err && is_used_up(&t)) {
		err = begin_next(d, &(struct beginning){ .period_ns = d->machine->period_ns,
							 .stack_mode = t.stack_mode });
		if (err)
			log_err("the machine's profile cannot begin anew: %s; it is tried again",
				strerror(-err));
	}
	call_look(d);
	return 0;
}

static void call_look(struct profild *d)
{
	call_later(d, &d->machine_timer, d->machine->stack_mode ? LOOK_STACKS_US : LOOK_US, look);
}

/* The next profile counts from here on; the former one ends. */
static void switch_over(struct profild *d)
{
	struct attachment *former = d->machine;
	struct profil_table t;

	d->machine = d->machine_next;
	d->machine_next = NULL;
	if (former && !table_read(&t, former->table) && is_used_up(&t))
		log_notice("the machine's profile begins anew: its table filled up, with %llu "
			   "places, %u files and %u commands",
			   t.used_places, t.used_images, t.used_groups);
	attachment_close(former);
	call_look(d);
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
static int begin_next(struct profild *d, const struct beginning *b)
{
	struct profil_msg_observe m = { .scope = PROFIL_SCOPE_MACHINE,
					.flags = PROFIL_OBSERVE_LATER,
					.group_by = PROFIL_GROUP_COMMAND | PROFIL_GROUP_CGROUP |
						    PROFIL_GROUP_SUMS,
					.places = MACHINE_PLACES,
					.images = MACHINE_IMAGES,
					.groups = MACHINE_GROUPS,
					.stack_mode = b->stack_mode,
					.nodes = MACHINE_NODES,
					.unwind_rows = MACHINE_UNWIND_ROWS,
					.period_ns = b->period_ns };
	struct observer_peer self = {
		.privileged = true, .machine = true, .at_once = b->at_once, .found = b->found
	};
	int err = observer_peer_of(&self, getpid());

	if (b->stack_mode)
		m.flags |= PROFIL_OBSERVE_KERNEL_STACKS;
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

int machine_on(struct profild *d, uint64_t period_ns, uint32_t stack_mode)
{
	const struct attachment *newest = machine_newest(d);
	struct beginning b = { .at_once = true };

	if (newest && (!period_ns || period_ns == newest->period_ns) &&
	    (!stack_mode || stack_mode == newest->stack_mode))
		return 0;
	b.stack_mode = stack_mode	  ? stack_mode
		       : newest		  ? newest->stack_mode
		       : d->config.stacks ? PROFIL_STACK_AUTO
					  : PROFIL_STACK_NONE;
	b.period_ns = period_ns ? period_ns : newest ? newest->period_ns : usual_period_ns(d);
	return begin_next(d, &b);
}

int machine_feed(struct profild *d, const struct client *c)
{
	if (!d->machine)
		return -ENOENT;
	if (!d->machine->stack_mode || d->machine->unwind < 0)
		return -ENOTSUP;
	if (d->feeder && d->feeder != c)
		return -EBUSY;
	d->feeder = c;
	return 0;
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
	if (d->config.stacks && !machine_newest(d)->stack_mode)
		log_warning("--machine: the profile continues without stacks; 'profilctl machine "
			    "off', then 'on', starts it anew");
}

void machine_open(struct profild *d)
{
	const struct beginning b = { .at_once = true, .found = true };
	int err = d->places ? begin_next(d, &b) : -ENOENT;

	if (!err)
		tell_continued(d);
	else if (err != -ENOENT)
		log_warning("cannot continue the machine's profile of an earlier daemon: %s",
			    strerror(-err));
	if (!err || !d->config.machine)
		return;
	err = d->places ? machine_on(d, 0, PROFIL_STACK_NONE) : -EOPNOTSUPP;
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
