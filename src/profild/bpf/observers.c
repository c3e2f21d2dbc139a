/* observers.c - attachments as the BPF programs see them: slots, tables, targets */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler_bpf.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"
#include "lifecycle_hooks.h"
#include "profild/store.h"
#include "process_table.h"
#include "profild/clock/clock.h"
#include "profild/clock/event_links.h"
#include "profild/observe/attachment.h"
#include "profild/observe/interpreters.h"
#include "profild/observe/table.h"
#include "profild/profile/target.h"
#include "reservation.h"
#include "profild/skeleton.h"
#include "table_maker.h"
#include "table_slots.h"
#include "target_use.h"
#include "tree_folder.h"

struct observer {
	struct target target; /* its index, clock and flags */
	uint32_t slot;
	struct table_making *making;	 /* its tables; NULL: they exist */
	struct profil_observer observer; /* while they are made */
	bool begun;			 /* it has a target */
	uint32_t uses;			 /* enum use: in which of tables it is counted */
	uint32_t waits;			 /* the number of its links besides a clock; 0: none */
	uint32_t uid;			 /* the only one that it counts, or PROFIL_WIDE_ANY */
};

enum use {
	USES_STATES = 1 << 0,
	USES_WAKERS = 1 << 1,
	USES_WAITS = 1 << 2,
	USES_LATENCY = 1 << 3,
};

struct observers {
	struct place_source source;
	struct sampler_bpf *bpf;
	struct table_slots *slots;
	struct table_maker *maker;
	struct tree_folder *folder;
	uint32_t epoch;
	int found;		       /* the machine's table of an earlier daemon; -1: none */
	const struct observer *stored; /* whose table is the machine's in the store */
};

static struct observers *self(struct place_source *source)
{
	return (struct observers *)source;
}

static struct profil_tables *tables_of(const struct observers *s)
{
	return s->bpf->maps.processes.tables;
}

static int take_slot(struct observers *s, const struct attachment *a, uint32_t *slot)
{
	if (!a->machine)
		return table_slots_take(s->slots, a->user, slot);
	*slot = table_slots_take_for_machine(s->slots);
	return 0;
}

static uint32_t new_epoch(struct observers *s)
{
	return ++s->epoch ? s->epoch : ++s->epoch;
}

/* Puts the observer and its tables into the maps. */
static int put_maps(struct observers *s, const struct observer *observer,
		    const struct attachment *a, struct profil_observer *o)
{
	int observers = bpf_map__fd(s->bpf->maps.skel->maps.observers);

	/*
	 * The daemon's /proc does not show the levels above its own. The machine's profile has the
	 * ids of the initial namespace, by which a feeder with the host's /proc finds the files.
	 */
	o->pid_ns_level = a->machine ? 0 : o->pid_ns_level + tables_of(s)->pid_ns_level;
	o->epoch = new_epoch(s);
	if (bpf_map_update_elem(observers, &observer->slot, o, BPF_ANY) < 0)
		return -errno;
	return table_slots_put(s->slots, observer->slot, a->table, a->unwind);
}

/* Waits count from now on: processes are added, or a wide scope begins. */
static void waits_begin(struct observers *s, const struct observer *observer)
{
	__atomic_store_n(&s->bpf->maps.processes.target[observer->target.index].waits_since_ns,
			 clock_ns(CLOCK_BOOTTIME), __ATOMIC_RELAXED);
}

static int widen(struct observers *s, const struct observer *observer)
{
	struct profil_wide *wide = &tables_of(s)->wide;

	if (wide->n == PROFIL_MAX_WIDE)
		return -EAGAIN;
	wide->of[wide->n] = profil_wide(observer->target.index, observer->uid);
	waits_begin(s, observer);
	__atomic_store_n(&wide->n, wide->n + 1, __ATOMIC_RELEASE);
	return 0;
}

/* A sample in flight may see the last target twice or miss it, but never an invalid one. */
static void narrow(struct observers *s, uint32_t target)
{
	struct profil_wide *wide = &tables_of(s)->wide;

	for (uint32_t i = 0; i < wide->n; i++) {
		if (profil_wide_target(wide->of[i]) != target)
			continue;
		__atomic_store_n(&wide->of[i], wide->of[wide->n - 1], __ATOMIC_RELEASE);
		__atomic_store_n(&wide->n, wide->n - 1, __ATOMIC_RELEASE);
	}
}

static uint32_t waits_of(const struct attachment *a)
{
	if (a->flags & PROFIL_OBSERVE_WAITS)
		return PROFIL_WAITS_STATES;
	return a->event.wanted && a->event.type == PROFIL_EVENT_OFF_CPU ? PROFIL_WAITS_SLEEPS
									: PROFIL_WAITS_NONE;
}

/* What the programs at switches and wake-ups have to do: as many attachments more as @sign says. */
static void count_uses(struct profil_tables *t, const struct observer *o, int sign)
{
	t->states += o->uses & USES_STATES ? (uint32_t)sign : 0;
	t->wakers += o->uses & USES_WAKERS ? (uint32_t)sign : 0;
	t->waits += o->uses & USES_WAITS ? (uint32_t)sign : 0;
	t->latency += o->uses & USES_LATENCY ? (uint32_t)sign : 0;
}

/*
 * Attaches the clock or event of @observer, and the lifecycle hooks. -ERANGE: no clock has this
 * period; the user's limit has been checked.
 */
static int use(struct sampler_bpf *b, struct observer *observer, const struct attachment *a)
{
	const struct event_choice *links = attachment_links(a);
	struct target *t = &observer->target;
	int err;

	observer->uses = (a->flags & PROFIL_OBSERVE_WAITS ? USES_STATES : 0u) |
			 (a->flags & PROFIL_OBSERVE_WAKERS ? USES_WAKERS : 0u) |
			 (a->flags & PROFIL_OBSERVE_LATENCY ? USES_LATENCY : 0u) |
			 (waits_of(a) ? USES_WAITS : 0u);
	if (a->event.wanted) {
		err = lifecycle_hooks_use(b->hooks);
		if (err)
			return err;
		err = event_links_use(b->events, links, &t->flags);
		if (err)
			lifecycle_hooks_unuse(b->hooks);
		else
			count_uses(b->maps.processes.tables, observer, 1);
		return err;
	}
	err = target_use(b, t);
	if (err)
		return err == -EACCES ? -ERANGE : err;
	if (!links)
		return 0;
	err = event_links_use(b->events, links, &observer->waits);
	if (err) {
		target_unuse(b, t);
		return err;
	}
	count_uses(b->maps.processes.tables, observer, 1);
	return 0;
}

static void unuse(struct sampler_bpf *b, const struct observer *observer)
{
	const struct target *t = &observer->target;

	count_uses(b->maps.processes.tables, observer, -1);
	if (observer->waits)
		event_links_unuse(b->events, observer->waits);
	if (!(t->flags & PROFIL_TARGET_EVENTS)) {
		target_unuse(b, t);
		return;
	}
	event_links_unuse(b->events, t->flags);
	lifecycle_hooks_unuse(b->hooks);
}

static uint32_t target_flags(const struct attachment *a)
{
	uint32_t flags = PROFIL_TARGET_OBSERVE;

	if (a->flags & PROFIL_OBSERVE_INHERIT)
		flags |= PROFIL_TARGET_INHERIT;
	if (a->flags & PROFIL_OBSERVE_FOLLOW)
		flags |= PROFIL_TARGET_FOLLOW;
	if (a->flags & PROFIL_OBSERVE_USER_ONLY)
		flags |= PROFIL_TARGET_USER_ONLY;
	if (a->flags & PROFIL_OBSERVE_CPU_CLOCK)
		flags |= PROFIL_TARGET_PERF;
	if (a->stack_mode)
		flags |= PROFIL_TARGET_STACKS;
	if (!a->privileged)
		flags |= PROFIL_TARGET_UNPRIVILEGED;
	return flags;
}

static void begin(struct observers *s, const struct observer *observer, const struct attachment *a)
{
	const struct target *t = &observer->target;
	struct profil_target *k = &s->bpf->maps.processes.target[t->index];

	*k = (struct profil_target){
		.period_ns = (__u32)t->period_ns,
		.flags = (__u16)t->flags,
		.slot = observer->slot,
		.user = t->user,
		.waits = waits_of(a),
		.latency = a->flags & PROFIL_OBSERVE_LATENCY ? 1 : 0,
	};
	tables_of(s)->owner[observer->slot] = t->user;
	clocks_begin(s->bpf->clocks, k);
	process_table_set_dirty(&s->bpf->maps.processes,
				t->index); /* stays set: nothing is drained */
	clocks_begun(s->bpf->clocks, k);
}

static int observe(struct observers *s, struct observer *observer, struct attachment *a,
		   struct profil_observer *o)
{
	struct target *t = &observer->target;
	int err = put_maps(s, observer, a, o);

	observer->uid = o->flags & PROFIL_OBSERVER_NARROW || o->scope == PROFIL_SCOPE_USER
				? o->uid
				: PROFIL_WIDE_ANY;
	if (err)
		return err;
	err = use(s->bpf, observer, a);
	if (err)
		return err;
	err = target_charge(t, a->user, false);
	if (!err)
		err = reservation_take(s->bpf->reservations, t);
	if (err) {
		target_charges_give(&t->charges);
		unuse(s->bpf, observer);
		return err;
	}
	begin(s, observer, a);
	if (a->scope != PROFIL_SCOPE_PROCESSES && !(a->flags & PROFIL_OBSERVE_LATER))
		err = widen(s, observer);
	if (err) {
		unuse(s->bpf, observer);
		reservation_give(s->bpf->reservations, t, false);
	}
	return err;
}

/* Takes a slot. */
static int observer_new(struct observer **out, struct observers *s, const struct attachment *a)
{
	struct observer *observer = calloc(1, sizeof(*observer));
	int err = observer ? take_slot(s, a, &observer->slot) : -ENOMEM;

	if (err) {
		free(observer);
		return err;
	}
	*out = observer;
	return 0;
}

/* Starts counting in the table of @a, whose source is @observer. */
static int observe_with_table(struct observers *s, struct observer *observer, struct attachment *a,
			      struct profil_observer *o)
{
	struct profil_table header;
	int err;

	/* A client writes its own descriptors of interpreters. */
	if (a->machine && a->unwind >= 0 && !table_read(&header, a->table))
		interpreters_put(a->unwind, a->table, &header);
	observer->target.period_ns = a->period_ns;
	observer->target.flags = target_flags(a);
	err = observe(s, observer, a, o);
	observer->begun = !err;
	return err;
}

/* Gives back the slot of an observer without a target. */
static void observer_free(struct observers *s, struct observer *observer)
{
	if (observer->making)
		table_making_drop(observer->making);
	table_slots_give(s->slots, observer->slot);
	free(observer);
}

#define MACHINE_TABLE "machine-table" /* in the persistent store */

static void store_machine(struct observers *s, const struct observer *observer, int table)
{
	if (s->stored == observer)
		return;
	store_drop(s->bpf->store, MACHINE_TABLE);
	closep(&s->found);
	s->stored = observer;
	if (store_put(s->bpf->store, MACHINE_TABLE, table))
		log_warning("cannot store the machine's table: its profile ends with this daemon");
}

/* Its tables exist. */
static int observer_start(struct observers *s, struct attachment *a, struct profil_observer *o)
{
	struct observer *observer = a->source;
	int err = observe_with_table(s, observer, a, o);

	if (!err && a->machine && !s->stored) /* else when it takes the former's place */
		store_machine(s, observer, a->table);
	return err;
}

/*
 * The slot comes first: a user without one must not make the daemon create tables. Those of a
 * client are made by a thread: observer_ready() continues with them.
 */
static int observer_open(struct place_source *source, struct attachment *a,
			 struct profil_observer *o, struct profil_table *header)
{
	struct observers *s = self(source);
	struct observer *observer;
	int err = observer_new(&observer, s, a);

	if (err)
		return err;
	observer->observer = *o;
	if (!a->at_once) {
		err = table_making_begin(&observer->making, s->maker, a->user, header);
	} else {
		err = tables_make(header, &a->table, &a->unwind);
		a->source = observer;
		if (!err)
			err = observer_start(s, a, o);
	}
	a->source = err ? NULL : observer;
	if (err)
		observer_free(s, observer);
	return err;
}

/*
 * The tree and the functions of an earlier daemon's table stay. The unwind rules come once more
 * from the feeder, and the descriptors of interpreters from their file.
 */
static void recover_stacks(struct attachment *a, struct profil_observer *o,
			   const struct profil_table *header)
{
	if (header->unwind_pages)
		a->unwind = table_create_unwind(header);
	a->stack_mode = o->stack_mode = header->stack_mode;
	o->node_page = header->node_page;
	o->node_pages = header->nodes / PROFIL_PAGE_NODES;
	if (header->flags & PROFIL_OBSERVE_KERNEL_STACKS)
		o->flags |= PROFIL_OBSERVER_KERNEL_STACKS;
	if (!header->functions)
		return;
	o->function_page = header->function_page;
	o->function_mask = header->functions / PROFIL_PAGE_FUNCTIONS - 1;
	o->functions = a->unwind < 0 ? 0 : header->functions;
}

static int observer_recover(struct place_source *source, struct attachment *a,
			    struct profil_observer *o, struct profil_table *header)
{
	struct observers *s = self(source);
	struct observer *observer;
	int err;

	if (s->found < 0)
		return -ENOENT;
	a->table = steal_fd(s->found);
	err = table_read(header, a->table);
	if (!err)
		err = observer_new(&observer, s, a);
	if (!err) {
		table_describe(o, header);
		a->period_ns = header->period_ns;
		recover_stacks(a, o, header);
		err = observe_with_table(s, observer, a, o);
		if (err)
			observer_free(s, observer);
	}
	if (err) {
		store_drop(s->bpf->store, MACHINE_TABLE);
	} else {
		s->stored = observer;
		a->source = observer;
	}
	return err;
}

static int observer_begin(struct place_source *source, struct attachment *a)
{
	struct observers *s = self(source);
	const struct observer *observer = a->source;
	int err = observer->begun ? widen(s, observer) : -EINPROGRESS;

	if (!err && a->machine)
		store_machine(s, observer, a->table);
	return err;
}

static int observer_add(struct place_source *source, struct attachment *a, pid_t tgid)
{
	struct observers *s = self(source);
	const struct observer *observer = a->source;
	struct process_table *p = &s->bpf->maps.processes;
	uint32_t index = observer->target.index, exec_id;
	int err = observer->begun ? maps_exec_id(&s->bpf->maps, (uint32_t)tgid, &exec_id) : -EBADF;

	if (err)
		return err;
	for (int at = 0;;) {
		uint64_t entry = process_table_next(p, (uint32_t)tgid, &at);

		if (!entry)
			break;
		if (profil_entry_target(entry) == index)
			return 0;
	}
	__atomic_store_n(&p->target[index].ended, 0, __ATOMIC_SEQ_CST);
	waits_begin(s, observer);
	return process_table_insert(p, (uint32_t)tgid, exec_id, index);
}

static uint64_t observer_total(struct place_source *source, const struct attachment *a)
{
	const struct observer *observer = a->source;
	const volatile struct profil_target *k =
		&self(source)->bpf->maps.processes.target[observer->target.index];

	return observer->begun ? k->total : 0;
}

static int observer_fold(struct place_source *source, const struct attachment *a)
{
	struct observers *s = self(source);
	const struct observer *observer = a->source;
	struct profil_observer o;

	if (bpf_map_lookup_elem(bpf_map__fd(s->bpf->maps.skel->maps.observers), &observer->slot,
				&o) < 0)
		return -errno;
	tree_folder_begin(s->folder, observer->slot, a->table, o.epoch, new_epoch(s));
	return 0;
}

static void observer_forget(struct place_source *source, struct attachment *a)
{
	struct observer *observer = a->source;

	if (!observer->begun) {
		observer_free(self(source), observer);
		return;
	}
	tree_folder_stop(self(source)->folder, observer->slot);
	target_charges_give(&observer->target.charges);
	free(observer);
}

static void observer_close(struct place_source *source, struct attachment *a)
{
	struct observers *s = self(source);
	struct observer *observer = a->source;
	struct target *t = &observer->target;

	if (!observer->begun) {
		observer_free(s, observer);
		return;
	}
	if (s->stored == observer) {
		store_drop(s->bpf->store, MACHINE_TABLE);
		s->stored = NULL;
	}
	tree_folder_stop(s->folder, observer->slot);
	if (a->scope != PROFIL_SCOPE_PROCESSES)
		narrow(s, t->index);
	process_table_clear(&s->bpf->maps.processes, 0, t->index);
	unuse(s->bpf, observer);
	table_slots_give(s->slots, observer->slot);
	reservation_give(s->bpf->reservations, t, false);
	free(observer);
}

static int observer_prepare(struct place_source *source, const struct attachment *a)
{
	const struct sampler_bpf *b = self(source)->bpf;
	const struct event_choice *links = attachment_links(a);
	int err = a->event.wanted ? 0 : clocks_prepare(b->clocks, a->period_ns, target_flags(a));

	return err || !links ? err : event_links_prepare(b->events, links);
}

static int observer_ready(struct place_source *source, struct attachment *a)
{
	struct observers *s = self(source);
	struct observer *observer = a->source;
	int err = 0;

	if (observer->making) /* its links may have ended meanwhile */
		err = observer_prepare(source, a);
	if (!err && observer->making) {
		err = table_making_take(observer->making, &a->table, &a->unwind);
		if (err != -EINPROGRESS)
			observer->making = NULL;
		if (!err)
			err = observer_start(s, a, &observer->observer);
	}
	if (err)
		return err;
	return table_slots_ready(s->slots, observer->slot, a->unwind >= 0);
}

static const struct place_source_ops ops = {
	.prepare = observer_prepare,
	.open = observer_open,
	.ready = observer_ready,
	.begin = observer_begin,
	.add = observer_add,
	.total = observer_total,
	.fold = observer_fold,
	.close = observer_close,
	.recover = observer_recover,
	.forget = observer_forget,
};

int observers_open(struct place_source **out, struct sampler_bpf *b, sd_event *event)
{
	struct observers *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->source.ops = &ops;
	s->bpf = b;
	s->epoch = (uint32_t)now_ns(); /* differs from those of an earlier daemon */
	tables_of(s)->wide.n = 0;
	tables_of(s)->states = tables_of(s)->wakers = 0;
	tables_of(s)->waits = tables_of(s)->latency = 0;
	s->found = b->maps.found ? store_take_map(b->store, MACHINE_TABLE, PROFIL_TABLE_NAME,
						  PROFIL_TABLE_PAGE)
				 : -1;
	err = table_slots_open(&s->slots, bpf_map__fd(b->maps.skel->maps.observed),
			       bpf_map__fd(b->maps.skel->maps.unwind_tables), s->found >= 0, event)
		      ?: table_maker_open(&s->maker, event)
		      ?: tree_folder_open(&s->folder, &b->maps, event);
	if (err) {
		observers_close(&s->source);
		return err;
	}
	*out = &s->source;
	return 0;
}

struct place_source *observers_close(struct place_source *source)
{
	struct observers *s = source ? self(source) : NULL;

	if (!s)
		return NULL;
	tree_folder_close(s->folder);
	table_maker_close(s->maker);
	table_slots_close(s->slots);
	closep(&s->found);
	free(s);
	return NULL;
}
