/* clock.c - the clocks: the timer tick, and one perf event per CPU
 *
 * A target takes its samples from the timer tick if that is available and its period is not shorter
 * than the tick's; otherwise from the perf events, which run at the shortest period in use. Each
 * target is then thinned to its own period (bpf/cpu_time.bpf.h). A clock is attached while it has
 * targets, and one second longer (linger.h).
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "late_programs.h"
#include "linger.h"
#include "source.h"
#include "profild/config.h"
#include "core/shared_maps.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "cpu_hotplug.h"
#include "profild/skeleton.h"
#include "profild/store.h"

#define TICK_NAME "tick"

/* A period in use on the perf events. */
struct rate {
	struct rate *next;
	uint64_t period_ns;
	unsigned int users;
};

struct clocks {
	const struct profil_bpf *skel;
	struct late_programs *programs;
	struct profil_clock *shared; /* with the BPF programs */
	struct store *store;
	sd_event *event;
	struct linger *linger;
	enum clock_choice choice;
	uint64_t tick_ns;
	uint64_t shortest_ns; /* no event is faster */

	bool ticks;	 /* the tick is available */
	bool mode_known; /* the tick can tell user mode from kernel mode */
	unsigned int tick_users;
	int tick_link; /* -1: not attached */

	struct rate *rates;	 /* in use on the perf events, the fastest first */
	uint64_t period_ns;	 /* of the events; 0: there are none */
	struct hotplug *hotplug; /* while there are */
	int ncpus;
	struct cpu_event *cpu;
};

/* --- the tick --------------------------------------------------------------------------------- */

/* Uses the raw fd of a link, not struct bpf_link, because the store keeps fds. */
static int tick_attach(struct clocks *c)
{
	int err;

	if (c->tick_link >= 0)
		return 0;
	c->tick_link = store_take_link(c->store, TICK_NAME);
	if (c->tick_link >= 0)
		return 0;
	c->tick_link = clock_tick_link(c->skel);
	if (c->tick_link < 0)
		return c->tick_link;
	err = store_put(c->store, TICK_NAME, c->tick_link);
	if (err)
		log_warning("cannot store the link of the timer tick: %s (after a restart its "
			    "samples will be missing)",
			    strerror(-err));
	return 0;
}

static void tick_detach(struct clocks *c)
{
	if (c->tick_link < 0)
		return;
	store_drop(c->store, TICK_NAME);
	close(steal_fd(c->tick_link));
}

/* --- perf events ------------------------------------------------------------------------------ */

static const char *event_name(int cpu, char name[32])
{
	snprintf(name, 32, "event-%d", cpu);
	return name;
}

/*
 * A link of an earlier daemon counts until all new ones are attached. It cannot be kept, because
 * its event, whose period must be changed, cannot be reached through it.
 */
static int event_attach(struct clocks *c, int cpu)
{
	char name[32];
	__cleanup(closep) int left = store_take_link(c->store, event_name(cpu, name));
	int program = late_programs_fd(c->programs, LATE_PROGRAM_PERF);
	int err = program < 0 ? program
			      : cpu_event_open(&c->cpu[cpu], program, c->choice == CLOCK_CYCLES,
					       c->period_ns, cpu);

	if (left >= 0)
		store_drop(c->store, name);
	if (err)
		return err == -ENODEV ? 0 : err;
	err = store_put(c->store, name, c->cpu[cpu].link);
	if (err)
		log_warning("cannot store %s: %s (after a restart its samples will be missing)",
			    name, strerror(-err));
	return 0;
}

static void event_detach(struct clocks *c, int cpu)
{
	char name[32];

	if (c->cpu[cpu].link < 0)
		return;
	store_drop(c->store, event_name(cpu, name));
	cpu_event_close(&c->cpu[cpu]);
}

/* Reopens the CPU's event, which stays dead after the CPU has been offline. */
static void on_cpu_online(void *arg, int cpu)
{
	struct clocks *c = arg;
	int err;

	if (cpu >= c->ncpus)
		return;
	event_detach(c, cpu);
	err = event_attach(c, cpu);
	if (err)
		log_warning("cannot open a perf event on CPU %d, which came online: %s (samples "
			    "on it are missing)",
			    cpu, strerror(-err));
}

static void events_close(struct clocks *c)
{
	c->hotplug = hotplug_close(c->hotplug);
	for (int cpu = 0; cpu < c->ncpus; cpu++)
		event_detach(c, cpu);
	c->period_ns = 0;
	c->shared->period_ns = 0;
}

/*
 * Sets what the BPF programs read. A tolerance of 0 turns the CPU-time account off: on nohz_full
 * CPUs, where sum_exec_runtime may stand still for long, and for hardware cycles, whose NMI has no
 * task storage.
 */
static void publish(struct clocks *c)
{
	bool exact = c->choice == CLOCK_CYCLES || clock_tick_missing();

	c->shared->tolerance_ns = exact ? 0 : (__u32)(c->tick_ns + c->period_ns);
	c->shared->period_ns = (__u32)c->period_ns;
}

static int events_open(struct clocks *c, uint64_t period_ns)
{
	c->period_ns = period_ns;
	publish(c);
	for (int cpu = 0; cpu < c->ncpus; cpu++) {
		int err = event_attach(c, cpu);

		if (err) {
			events_close(c);
			return err;
		}
	}
	c->shared->owner = c->skel->rodata->clock_owner;
	hotplug_open(&c->hotplug, c->event, on_cpu_online, c);
	return 0;
}

/* Until its CPU has been changed, a sample stands for the wrong period. */
static void events_set_period(struct clocks *c, uint64_t period_ns)
{
	c->period_ns = period_ns;
	publish(c);
	for (int cpu = 0; cpu < c->ncpus; cpu++) {
		if (cpu_event_set_period(&c->cpu[cpu], c->choice == CLOCK_CYCLES, period_ns))
			on_cpu_online(c, cpu);
	}
}

/* --- users of links --------------------------------------------------------------------------- */

/* The link to the rate of @period_ns, or to where it belongs. */
static struct rate **rate_at(struct clocks *c, uint64_t period_ns)
{
	struct rate **place = &c->rates;

	while (*place && (*place)->period_ns < period_ns)
		place = &(*place)->next;
	return place;
}

static void rate_unuse(struct clocks *c, uint64_t period_ns)
{
	struct rate **place = rate_at(c, period_ns), *rate = *place;

	if (!rate || rate->period_ns != period_ns || --rate->users)
		return;
	*place = rate->next;
	free(rate);
	linger_begin(c->linger);
}

static int rate_use(struct clocks *c, uint64_t period_ns)
{
	struct rate **place = rate_at(c, period_ns), *rate = *place;

	if (!rate || rate->period_ns != period_ns) {
		rate = calloc(1, sizeof(*rate));
		if (!rate)
			return -ENOMEM;
		rate->period_ns = period_ns;
		rate->next = *place;
		*place = rate;
	}
	rate->users++;
	return 0;
}

static int event_use(struct clocks *c, uint64_t period_ns)
{
	int err = rate_use(c, period_ns);

	if (err)
		return err;
	if (!c->period_ns)
		err = events_open(c, period_ns);
	else if (period_ns < c->period_ns)
		events_set_period(c, period_ns);
	if (err)
		rate_unuse(c, period_ns);
	return err;
}

static void on_linger(void *arg)
{
	struct clocks *c = arg;

	if (!c->tick_users)
		tick_detach(c);
	if (!c->rates && c->period_ns)
		events_close(c);
	else if (c->rates && c->rates->period_ns > c->period_ns)
		events_set_period(c, c->rates->period_ns);
}

/* Says whether the tick is fast enough and can do what @flags ask. */
static bool is_on_tick(const struct clocks *c, uint64_t period_ns, uint32_t flags)
{
	bool perf = flags & PROFIL_TARGET_PERF && c->choice != CLOCK_TICK;

	return c->ticks && period_ns >= c->tick_ns && !perf &&
	       (!(flags & PROFIL_TARGET_USER_ONLY) || c->mode_known);
}

/* 0 if perf events can do what @flags ask. */
static int check_events(const struct clocks *c, uint64_t period_ns, uint32_t flags)
{
	if (c->choice == CLOCK_TICK)
		return flags & PROFIL_TARGET_USER_ONLY && !c->mode_known ? -EOPNOTSUPP : -EACCES;
	return period_ns < c->shortest_ns ? -EACCES : 0;
}

int clocks_prepare(const struct clocks *c, uint64_t period_ns, uint32_t flags)
{
	bool tick = is_on_tick(c, period_ns, flags);
	int program;

	if (tick ? !(flags & PROFIL_TARGET_OBSERVE) : check_events(c, period_ns, flags))
		return 0;
	program = late_programs_fd(c->programs, tick ? LATE_PROGRAM_TICK : LATE_PROGRAM_PERF);
	return program < 0 ? program : 0;
}

int clocks_use(struct clocks *c, uint64_t period_ns, uint32_t *flags)
{
	int err;

	*flags &= ~(uint32_t)PROFIL_TARGET_TICK;
	if (!is_on_tick(c, period_ns, *flags))
		return check_events(c, period_ns, *flags) ?: event_use(c, period_ns);
	*flags |= PROFIL_TARGET_TICK;
	err = tick_attach(c);
	c->tick_users += !err;
	return err;
}

void clocks_unuse(struct clocks *c, uint64_t period_ns, uint32_t flags)
{
	if (!(flags & PROFIL_TARGET_TICK))
		rate_unuse(c, period_ns);
	else if (!--c->tick_users)
		linger_begin(c->linger);
}

/* The random start spreads the samples of targets that start at the same time. */
void clocks_begin(const struct clocks *c, struct profil_target *k)
{
	k->epoch = c->shared->epoch + 1;
	k->elapsed_ns = (uint64_t)random() * c->tick_ns;
	k->started_ns = clock_ns(CLOCK_BOOTTIME);
}

void clocks_begun(struct clocks *c, const struct profil_target *k)
{
	__atomic_store_n(&c->shared->epoch, k->epoch, __ATOMIC_RELEASE);
}

/* --- open and close --------------------------------------------------------------------------- */

/* Finds out whether the tick is available, by attaching to it for a second. */
static int try_tick(struct clocks *c)
{
	int err = clock_tick_missing() ? -ENODEV : tick_attach(c);

	if (err)
		return err;
	c->ticks = clock_tick_await(c->skel);
	linger_begin(c->linger);
	return c->ticks ? 0 : -ENODEV;
}

static const char *why_no_tick(int err)
{
	return err == -ENODEV ? "not every CPU has one by high-resolution timers" : strerror(-err);
}

static int choose(struct clocks *c, const struct config *config)
{
	int err = 0;

	c->choice = config->clock;
	if (c->choice == CLOCK_CYCLES) {
		err = cpu_event_check_cycles();
		if (err)
			log_err("--clock cycles: no CPU here counts its cycles (%s), as in most "
				"virtual machines; use --clock auto",
				strerror(-err));
	}
	if (c->choice == CLOCK_AUTO || c->choice == CLOCK_TICK)
		err = try_tick(c);
	if (c->choice == CLOCK_AUTO && err) {
		log_notice("timer-tick clock unavailable (%s): using one perf event per CPU",
			   why_no_tick(err));
		err = 0;
	} else if (c->choice == CLOCK_TICK && err) {
		log_err("--clock tick: unavailable (%s); use --clock auto", why_no_tick(err));
	} else if (c->choice == CLOCK_TICK && config->period_ns < c->tick_ns) {
		log_err("--rate: with --clock tick, at most %llu Hz",
			(unsigned long long)(NSEC_PER_SEC / c->tick_ns));
		err = -EINVAL;
	}
	return err;
}

static int open_all(struct clocks *c, const struct config *config)
{
	int err = linger_open(&c->linger, c->event, on_linger, c);

	if (err)
		return err;
	c->ncpus = libbpf_num_possible_cpus();
	if (c->ncpus < 0)
		return c->ncpus;
	c->cpu = calloc((size_t)c->ncpus, sizeof(*c->cpu));
	if (!c->cpu)
		return -ENOMEM;
	for (int i = 0; i < c->ncpus; i++)
		c->cpu[i] = (struct cpu_event){ -1, -1 };
	return choose(c, config);
}

/* The highest rate, unless the administrator has set a higher one. */
#define EVENT_MAX_HZ 10000

static uint64_t shortest_of(const struct config *config)
{
	uint64_t ns = period_of(EVENT_MAX_HZ);

	ns = config->period_ns < ns ? config->period_ns : ns;
	return config->fast_period_ns < ns ? config->fast_period_ns : ns;
}

int clocks_open(struct clocks **out, const struct config *config, struct profil_bpf *skel,
		struct late_programs *programs, struct store *store, sd_event *event)
{
	struct clocks *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->skel = skel;
	c->programs = programs;
	c->shared = clock_shared(skel);
	c->mode_known = clock_tick_knows_mode(skel);
	c->store = store;
	c->event = event;
	c->tick_ns = clock_tick_ns();
	c->shortest_ns = shortest_of(config);
	c->tick_link = -1;
	err = open_all(c, config);
	if (err) {
		store_abandon(store); /* before the tick of an earlier daemon is detached */
		clocks_close(c);
		return err;
	}
	*out = c;
	/* Without the tick every target takes perf events. */
	return c->ticks ? 0 : late_programs_load_perf(programs);
}

struct clocks *clocks_close(struct clocks *c)
{
	if (!c)
		return NULL;
	if (!c->tick_users)
		tick_detach(c);
	closep(&c->tick_link);
	if (!c->rates && c->period_ns)
		events_close(c);
	for (int i = 0; c->cpu && i < c->ncpus; i++)
		cpu_event_close(&c->cpu[i]);
	hotplug_close(c->hotplug);
	while (c->rates) {
		struct rate *rate = c->rates;

		c->rates = rate->next;
		free(rate);
	}
	linger_close(c->linger);
	free(c->cpu);
	free(c);
	return NULL;
}
