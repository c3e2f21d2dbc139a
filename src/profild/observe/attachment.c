/* attachment.c - one attachment: what a client observes, and the table that counts its samples */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attachment.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "retired_tables.h"
#include "table.h"

static int namespace_of(uint32_t *out, pid_t pid, const char *name)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name);
	if (stat(path, &st) < 0)
		return -errno;
	*out = (uint32_t)st.st_ino;
	return 0;
}

int observer_peer_of(struct observer_peer *peer, pid_t pid)
{
	__cleanup(fclosep) FILE *f = NULL;
	__cleanup(freep) char *line = NULL;
	unsigned long long caps = 0;
	char path[64];
	size_t room = 0;
	int err = namespace_of(&peer->pid_ns, pid, "pid");

	if (!err)
		err = namespace_of(&peer->user_ns, pid, "user");
	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	peer->pid_ns_level = 0;
	while (getline(&line, &room, f) >= 0) {
		sscanf(line, "CapPrm: %llx", &caps);
		for (const char *at = strncmp(line, "NSpid:", 6) ? NULL : strchr(line, '\t');
		     at && (at = strchr(at + 1, '\t'));)
			peer->pid_ns_level++;
	}
	peer->caps = caps;
	return 0;
}

/* Sets which tasks @o counts, and the rights of its owner. */
static int select_tasks(struct profil_observer *o, const struct profil_msg_observe *m,
			const struct observer_peer *peer)
{
	if (m->scope > PROFIL_SCOPE_MACHINE)
		return -EINVAL;
	o->scope = m->scope;
	o->uid = peer->privileged ? m->uid : peer->uid;
	o->gid = peer->gid;
	o->cgroup = m->cgroup;
	o->ino = m->ino;
	o->dev = (uint32_t)m->dev;
	memcpy(o->command, m->command, sizeof(o->command));
	o->command[sizeof(o->command) - 1] = 0;
	o->pid_ns = peer->pid_ns;
	o->pid_ns_level = peer->pid_ns_level;
	o->user_ns = peer->user_ns;
	o->caps = peer->caps;
	if (!peer->privileged)
		o->flags |= PROFIL_OBSERVER_HIDES_KERNEL | PROFIL_OBSERVER_NARROW;
	return 0;
}

#define KNOWN_FLAGS                                                                    \
	(PROFIL_OBSERVE_INHERIT | PROFIL_OBSERVE_FOLLOW | PROFIL_OBSERVE_USER_ONLY |   \
	 PROFIL_OBSERVE_KERNEL_STACKS | PROFIL_OBSERVE_LATER | PROFIL_OBSERVE_EVENT |  \
	 PROFIL_OBSERVE_CPU_CLOCK | PROFIL_OBSERVE_FUNCTIONS | PROFIL_OBSERVE_NATIVE | \
	 PROFIL_OBSERVE_WAITS | PROFIL_OBSERVE_WAKERS | PROFIL_OBSERVE_LATENCY)
#define KNOWN_GROUPS                                                                               \
	(PROFIL_GROUP_COMMAND | PROFIL_GROUP_CGROUP | PROFIL_GROUP_PROCESS | PROFIL_GROUP_THREAD | \
	 PROFIL_GROUP_SUMS)

bool attachment_is_event(const struct profil_msg_observe *m)
{
	return m->flags & PROFIL_OBSERVE_EVENT;
}

const struct event_choice *attachment_links(const struct attachment *a)
{
	static const struct event_choice waits = { .type = PROFIL_EVENT_OFF_CPU,
						   .period = 1,
						   .wanted = 1 };

	return a->flags & (PROFIL_OBSERVE_WAITS | PROFIL_OBSERVE_LATENCY) ? &waits
	       : a->event.wanted					  ? &a->event
									  : NULL;
}

static bool names_event(const struct profil_msg_observe *m)
{
	return m->event_type || m->event_config || m->frequency;
}

static int choose_event(struct event_choice *c, const struct profil_msg_observe *m,
			const struct observer_peer *peer)
{
	if (!attachment_is_event(m))
		return 0;
	*c = (struct event_choice){ .type = m->event_type,
				    .config = m->event_config,
				    .period = m->frequency   ? 0
					      : m->period_ns ? m->period_ns
							     : 1,
				    .frequency = m->frequency,
				    .limit_hz = peer->limit_hz,
				    .wanted = 1 };
	return event_choice_check(c, peer->privileged);
}

static int make_header(struct profil_table *header, const struct profil_msg_observe *m,
		       const struct event_choice *event, uint64_t period_ns)
{
	if (m->flags & ~(__u32)KNOWN_FLAGS || m->group_by & ~(__u32)KNOWN_GROUPS || m->zero ||
	    m->stack_mode > PROFIL_STACK_FP ||
	    (m->flags & PROFIL_OBSERVE_LATER && m->scope == PROFIL_SCOPE_PROCESSES) ||
	    (names_event(m) && !attachment_is_event(m)) ||
	    (m->event_type == PROFIL_EVENT_BRANCHES && !m->stack_mode) ||
	    (m->flags & PROFIL_OBSERVE_WAKERS && !(m->flags & PROFIL_OBSERVE_WAITS)) ||
	    (m->flags & PROFIL_OBSERVE_LATENCY &&
	     (m->flags & (PROFIL_OBSERVE_EVENT | PROFIL_OBSERVE_WAITS) ||
	      !(m->flags & PROFIL_OBSERVE_CPU_CLOCK))) ||
	    (m->flags & PROFIL_OBSERVE_WAITS &&
	     (!m->stack_mode || m->flags & (PROFIL_OBSERVE_EVENT | PROFIL_OBSERVE_USER_ONLY))))
		return -EINVAL;
	header->stack_mode = m->stack_mode;
	header->group_by = m->group_by;
	header->period_ns = period_ns;
	header->event_type = PERF_TYPE_SOFTWARE;
	header->event_config = PERF_COUNT_SW_CPU_CLOCK;
	if (event->wanted) {
		header->event_type = event->type;
		header->event_config = event->config;
	}
	header->flags = m->flags & ~(__u32)PROFIL_OBSERVE_LATER;
	header->started_ns = clock_ns(CLOCK_BOOTTIME);
	header->started_real_ns = clock_ns(CLOCK_REALTIME);
	return 0;
}

static int take_table_charges(struct attachment *a, uint64_t bytes)
{
	struct table_charges *c = &a->charges;
	int err = charge_take(&c->profile, a->user, RES_PROFILES, 1);

	if (!err)
		err = charge_take(&c->memory, a->user, RES_TABLE_BYTES, bytes);
	if (err)
		table_charges_give(c);
	return err;
}

/* -EDQUOT: the user's tables that are ending may give room in some milliseconds. */
static int take_charges(struct attachment *a, uint64_t bytes)
{
	struct retired_tables *retired = a->daemon->retired;
	int err = 0;

	if (a->scope != PROFIL_SCOPE_PROCESSES)
		err = charge_take(&a->wide, a->user, RES_WIDE, 1);
	if (err)
		return err;
	err = take_table_charges(a, bytes);
	if (err && !a->machine &&
	    bytes <= quota_limit(a->daemon->quota, a->user, RES_TABLE_BYTES) &&
	    retired_tables_are_ending(retired, a->user))
		return -EDQUOT;
	if (!err && attachment_links(a))
		err = charge_take(&a->events, a->user, RES_EVENTS, 1);
	return err;
}

/* -EDQUOT: likewise. */
static int open_table(struct attachment *a, struct profil_observer *o, struct profil_table *header)
{
	struct profild *d = a->daemon;
	int err = d->places->ops->open(d->places, a, o, header);

	/* Without a table: there is no slot. */
	if (err == -EAGAIN && a->table < 0 && !a->machine &&
	    retired_tables_are_ending(d->retired, a->user))
		return -EDQUOT;
	return err;
}

static void attachment_free(struct attachment *a)
{
	retired_tables_add(a->daemon->retired, &a->charges, a->table, a->unwind);
	charge_give(&a->events);
	charge_give(&a->wide);
	user_unref(a->user);
	closep(&a->table);
	closep(&a->unwind);
	free(a);
}

/* As the request @m of @peer describes it. NULL: out of memory. */
static struct attachment *attachment_new(struct profild *d, const struct profil_msg_observe *m,
					 const struct observer_peer *peer)
{
	struct attachment *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->daemon = d;
	a->table = a->unwind = -1;
	a->stack_mode = m->stack_mode;
	a->user = user_ref(peer->user);
	a->privileged = peer->privileged;
	a->machine = peer->machine;
	a->at_once = peer->at_once;
	a->scope = m->scope;
	a->flags = m->flags;
	a->period_ns = m->period_ns ? m->period_ns : d->config.period_ns;
	return a;
}

static __u32 observer_flags(const struct profil_msg_observe *m, const struct observer_peer *peer)
{
	__u32 flags = 0;

	if (m->flags & PROFIL_OBSERVE_KERNEL_STACKS && peer->privileged)
		flags |= PROFIL_OBSERVER_KERNEL_STACKS;
	if (m->flags & PROFIL_OBSERVE_NATIVE)
		flags |= PROFIL_OBSERVER_NATIVE;
	if (m->flags & PROFIL_OBSERVE_WAKERS)
		flags |= PROFIL_OBSERVER_WAKERS;
	return flags;
}

/* Chooses event, tasks and room, takes the charges, and opens the table or finds it again. */
static int attachment_set_up(struct attachment *a, const struct profil_msg_observe *m,
			     const struct observer_peer *peer)
{
	struct place_source *places = a->daemon->places;
	struct table_room room = { m->places, m->images,      m->groups,
				   m->nodes,  m->unwind_rows, m->sleepers };
	struct profil_observer o = { .flags = observer_flags(m, peer) };
	struct profil_table header = { 0 };
	int err = choose_event(&a->event, m, peer);

	if (a->event.wanted)
		a->period_ns = a->event.frequency ? 1 : a->event.period;
	if (!peer->found) /* what an earlier daemon counted with is loaded */
		err = err ?: places->ops->prepare(places, a);
	err = err ?: select_tasks(&o, m, peer) ?: make_header(&header, m, &a->event, a->period_ns);
	if (!peer->privileged)
		header.flags &= ~(uint32_t)PROFIL_OBSERVE_KERNEL_STACKS;
	err = err ?: table_layout(&header, &o, &room) ?: take_charges(a, table_bytes(&header));
	if (err)
		return err;
	return peer->found ? places->ops->recover(places, a, &o, &header)
			   : open_table(a, &o, &header);
}

int attachment_open(struct attachment **out, struct profild *d, const struct profil_msg_observe *m,
		    const struct observer_peer *peer)
{
	struct attachment *a;
	int err;

	if (!d->places)
		return -EOPNOTSUPP;
	a = attachment_new(d, m, peer);
	if (!a)
		return -ENOMEM;
	err = attachment_set_up(a, m, peer);
	if (err) {
		attachment_free(a);
		return err;
	}
	a->next = d->attachments;
	d->attachments = a;
	*out = a;
	return 0;
}

int attachment_add(struct attachment *a, pid_t tgid)
{
	int err;

	if (a->scope != PROFIL_SCOPE_PROCESSES)
		return -EINVAL;
	if (!a->source)
		return -EBADF;
	err = a->daemon->places->ops->add(a->daemon->places, a, tgid);
	if (!err && !a->processes++)
		a->first = tgid;
	return err;
}

int attachment_begin(struct attachment *a)
{
	struct place_source *source = a->daemon->places;
	int err;

	if (!a->source)
		return -EBADF;
	if (!(a->flags & PROFIL_OBSERVE_LATER))
		return -EINVAL;
	err = source->ops->begin(source, a);
	if (!err)
		a->flags &= ~(uint32_t)PROFIL_OBSERVE_LATER;
	return err;
}

int attachment_ready(struct attachment *a)
{
	return a->source ? a->daemon->places->ops->ready(a->daemon->places, a) : 0;
}

uint64_t attachment_total(const struct attachment *a)
{
	struct place_source *source = a->daemon->places;

	return a->source ? source->ops->total(source, a) : a->past;
}

void attachment_detach(struct attachment *a)
{
	a->past = attachment_total(a);
	if (a->source)
		a->daemon->places->ops->close(a->daemon->places, a);
	a->source = NULL;
	charge_give(&a->wide);
}

static void unlink_attachment(struct attachment *a)
{
	struct attachment **place;

	for (place = &a->daemon->attachments; *place && *place != a; place = &(*place)->next)
		;
	if (*place)
		*place = a->next;
}

struct attachment *attachment_close(struct attachment *a)
{
	if (!a)
		return NULL;
	unlink_attachment(a);
	attachment_detach(a);
	attachment_free(a);
	return NULL;
}

struct attachment *attachment_forget(struct attachment *a)
{
	unlink_attachment(a);
	a->daemon->places->ops->forget(a->daemon->places, a);
	attachment_free(a);
	return NULL;
}
