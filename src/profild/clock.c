/* clock.c - the clocks in use: at each rate, the timer's tick or perf events on each CPU */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "clock_link.h"
#include "config.h"
#include "core/layout.h"
#include "core/log.h"
#include "core/scope.h"
#include "hotplug.h"
#include "store.h"

#define LINGER_US 1000000

/* A clock in use, or that was a moment ago. */
struct clock {
	struct clock *next;
	uint64_t period_ns; /* 0: the timer's tick, whatever it is thinned to */
	unsigned int users;
	bool found; /* as an earlier daemon left it */
	int nlinks; /* one for each CPU; of the tick, one for all */
	int link[]; /* -1: that CPU is not online */
};

struct clocks {
	const struct profil_bpf *skel;
	struct store *store;
	sd_event *event;
	sd_event_source *linger;
	struct hotplug *hotplug; /* while there are perf events */
	enum clock_choice choice;
	bool ticks; /* there is a timer's tick to ride on */
	uint64_t tick_ns;
	struct clock *first;
};

#define NAME_BYTES 48

static const char *link_name(const struct clock *clock, int cpu, char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "tick-%llu-%d", (unsigned long long)clock->period_ns, cpu);
	return name;
}

static int link_new(struct clocks *c, const struct clock *clock, int cpu)
{
	if (!clock->period_ns)
		return clock_tick_link(c->skel);
	return clock_event_link(c->skel, c->choice == CLOCK_CYCLES, clock->period_ns, cpu);
}

/* A link as a plain descriptor: so it goes into the store, and comes out again. */
static int link_open(struct clocks *c, struct clock *clock, int cpu)
{
	char name[NAME_BYTES];
	int link = store_take(c->store, link_name(clock, cpu, name)), err;

	clock->found |= link >= 0;
	if (link < 0) {
		link = link_new(c, clock, cpu);
		err = link < 0 ? 0 : store_put(c->store, name, link);
		if (err)
			log_warning("cannot store %s: %s; after a restart its ticks will be "
				    "missing",
				    name, strerror(-err));
	}
	clock->link[cpu] = link < 0 ? -1 : link;
	return link == -ENODEV || link >= 0 ? 0 : link;
}

static void link_drop(struct clocks *c, struct clock *clock, int cpu)
{
	char name[NAME_BYTES];

	if (clock->link[cpu] < 0)
		return;
	store_drop(c->store, link_name(clock, cpu, name));
	close(steal_fd(clock->link[cpu]));
}

static void clock_drop(struct clocks *c, struct clock *clock)
{
	for (int i = 0; i < clock->nlinks; i++)
		link_drop(c, clock, i);
	free(clock);
}

static int clock_new(struct clock **out, struct clocks *c, uint64_t period_ns)
{
	int nlinks = period_ns ? libbpf_num_possible_cpus() : 1, err = 0;
	struct clock *clock;

	if (nlinks < 0)
		return nlinks;
	clock = malloc(sizeof(*clock) + (size_t)nlinks * sizeof(clock->link[0]));
	if (!clock)
		return -ENOMEM;
	*clock = (struct clock){ .period_ns = period_ns, .nlinks = nlinks };
	for (int i = 0; i < nlinks; i++)
		clock->link[i] = -1;
	for (int i = 0; !err && i < nlinks; i++)
		err = link_open(c, clock, i);
	if (err) {
		clock_drop(c, clock);
		return err;
	}
	*out = clock;
	return 0;
}

/* An event stays dead when the CPU that it was on comes back. */
static void on_cpu_online(void *arg, int cpu)
{
	struct clocks *c = arg;

	for (struct clock *clock = c->first; clock; clock = clock->next) {
		int err;

		if (!clock->period_ns || cpu >= clock->nlinks)
			continue;
		link_drop(c, clock, cpu);
		err = link_open(c, clock, cpu);
		if (err)
			log_warning("CPU %d came online, and cannot have a perf event: %s; "
				    "what runs there is not counted",
				    cpu, strerror(-err));
	}
}

/* CPUs are watched while there are events that they can take with them. */
static void watch_cpus(struct clocks *c)
{
	bool events = false;

	for (const struct clock *clock = c->first; clock; clock = clock->next)
		events |= clock->period_ns != 0;
	if (!events)
		c->hotplug = hotplug_close(c->hotplug);
	else if (!c->hotplug)
		hotplug_open(&c->hotplug, c->event, on_cpu_online, c);
}

static int on_linger(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct clocks *c = userdata;
	struct clock **place = &c->first;

	(void)source;
	(void)usec;
	while (*place) {
		struct clock *clock = *place;

		if (clock->users) {
			place = &clock->next;
			continue;
		}
		*place = clock->next;
		clock_drop(c, clock);
	}
	watch_cpus(c);
	return 0;
}

static void linger(struct clocks *c)
{
	sd_event_source_set_time_relative(c->linger, LINGER_US);
	if (sd_event_source_set_enabled(c->linger, SD_EVENT_ONESHOT) < 0)
		on_linger(c->linger, 0, c);
}

/* Where the clock of @period_ns is linked, or would be. */
static struct clock **place_of(struct clocks *c, uint64_t period_ns)
{
	struct clock **place = &c->first;

	while (*place && (*place)->period_ns != period_ns)
		place = &(*place)->next;
	return place;
}

static int use(struct clocks *c, uint64_t period_ns)
{
	struct clock **place = place_of(c, period_ns);
	int err = *place ? 0 : clock_new(place, c, period_ns);

	if (err)
		return err;
	(*place)->users++;
	watch_cpus(c);
	return 0;
}

static void unuse(struct clocks *c, uint64_t period_ns)
{
	struct clock *clock = *place_of(c, period_ns);

	if (clock && !--clock->users)
		linger(c);
}

int clocks_use(struct clocks *c, uint64_t period_ns, uint32_t *flags)
{
	bool user_only = *flags & PROFIL_TARGET_USER_ONLY;
	bool fits = c->ticks && period_ns >= c->tick_ns && !user_only;

	if (c->choice == CLOCK_TICK && !fits)
		return user_only ? -EOPNOTSUPP : -EACCES;
	*flags &= ~(uint32_t)PROFIL_TARGET_TICK;
	if (fits)
		*flags |= PROFIL_TARGET_TICK;
	return use(c, fits ? 0 : period_ns);
}

void clocks_unuse(struct clocks *c, uint64_t period_ns, uint32_t flags)
{
	unuse(c, flags & PROFIL_TARGET_TICK ? 0 : period_ns);
}

/*
 * Targets that begin at once do not have their ticks at once. Perf events are held against the
 * scheduler's time: not where that may stand still for long (nohz_full), nor in an NMI (hardware
 * cycles), where a thread's storage cannot be had.
 */
void clocks_begin(const struct clocks *c, struct profil_target *k)
{
	bool held = c->choice != CLOCK_CYCLES && !clock_tick_missing();

	k->slack_ns = held ? (__u32)c->tick_ns + k->period_ns : 0;
	k->began = profil_moment(clock_now_ns());
	k->time_ns = k->flags & PROFIL_TARGET_TICK ? (uint64_t)random() * c->tick_ns : 0;
}

/* Finds out whether the tick comes; its clock is there for a moment, as if somebody used it. */
static int try_tick(struct clocks *c)
{
	int err = clock_tick_missing() ? -ENODEV : use(c, 0);

	if (err)
		return err;
	c->ticks = (*place_of(c, 0))->found || clock_tick_await(c->skel);
	unuse(c, 0);
	return c->ticks ? 0 : -ENODEV;
}

/* What the tick needs, for who wonders. */
static const char *why_no_tick(int err)
{
	return err == -ENODEV ? "not every CPU has one by high-resolution timers" : strerror(-err);
}

static int choose(struct clocks *c, const struct config *config)
{
	int err = 0;

	c->choice = config->clock;
	if (c->choice == CLOCK_CYCLES) {
		err = clock_cycles_check();
		if (err)
			log_err("--clock cycles: no CPU here counts its cycles (%s), as in most "
				"virtual machines; use --clock auto",
				strerror(-err));
	}
	if (c->choice == CLOCK_AUTO || c->choice == CLOCK_TICK)
		err = try_tick(c);
	if (c->choice == CLOCK_AUTO && err) {
		log_notice("no riding on the timer's tick (%s): each rate has perf events",
			   why_no_tick(err));
		err = 0;
	} else if (c->choice == CLOCK_TICK && err) {
		log_err("--clock tick: no riding on it here (%s); use --clock auto",
			why_no_tick(err));
	} else if (c->choice == CLOCK_TICK && config->period_ns < c->tick_ns) {
		log_err("--rate: with --clock tick, at most %llu Hz",
			(unsigned long long)(NSEC_PER_SEC / c->tick_ns));
		err = -EINVAL;
	}
	return err;
}

int clocks_open(struct clocks **out, const struct config *config, struct profil_bpf *skel,
		struct store *store, sd_event *event)
{
	struct clocks *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->skel = skel;
	c->store = store;
	c->event = event;
	c->tick_ns = clock_tick_ns();
	err = sd_event_add_time_relative(event, &c->linger, CLOCK_MONOTONIC, LINGER_US,
					 LINGER_US / 10, on_linger, c);
	if (err >= 0)
		err = sd_event_source_set_enabled(c->linger, SD_EVENT_OFF);
	if (err >= 0)
		err = choose(c, config);
	if (err < 0) {
		clocks_close(c);
		return err;
	}
	*out = c;
	return 0;
}

struct clocks *clocks_close(struct clocks *c)
{
	if (!c)
		return NULL;
	while (c->first) {
		struct clock *clock = c->first;

		c->first = clock->next;
		for (int i = 0; clock->users && i < clock->nlinks; i++)
			closep(&clock->link[i]);
		if (clock->users)
			free(clock);
		else
			clock_drop(c, clock);
	}
	hotplug_close(c->hotplug);
	sd_event_source_unref(c->linger);
	free(c);
	return NULL;
}
