/* cpu_time.c - CPU time becomes samples: the accounts of bpf/cpu_time.bpf.h with made-up times */
#include <stdint.h>
#include <stdlib.h>

#include "synthetic.h"

#define MS 1000000ull
#define TICK_NS SYNTHETIC_TICK_NS

static struct synthetic s;

static void start(void)
{
	synthetic_alone(&s);
}

static void stop(void)
{
	synthetic_close(&s);
}

TestSuite(synth_cpu_time, .init = start, .fini = stop);

static uint64_t random_below(uint64_t n)
{
	return (uint64_t)rand() % n;
}

/* --- perf events ------------------------------------------------------------------------------ */

#define PERIOD_NS 1000000u /* 1000 Hz */
#define STEP_NS 4000000u   /* of sum_exec_runtime: a scheduler's tick at 250 Hz */
#define TOLERANCE_NS (STEP_NS + PERIOD_NS)

/* How a thread runs from one event that finds it to the next. */
struct run {
	const char *name;
	uint64_t (*next_ns)(unsigned int event);
	uint64_t most_ns; /* of one step; more than two periods make a debt that is paid in parts */
};

static uint64_t run_alone(unsigned int event)
{
	return PERIOD_NS;
}

/* Shares its CPU with threads that the events miss: it runs for longer than they say. */
static uint64_t run_debt(unsigned int event)
{
	return event % 3 ? PERIOD_NS : PERIOD_NS * 3 / 2;
}

/* Is found by more events than its time is worth. */
static uint64_t run_credit(unsigned int event)
{
	return event % 2 ? PERIOD_NS / 3 : PERIOD_NS / 2;
}

/* Slices of up to 3 ms, each as long as a draw says. */
static uint64_t run_slices(unsigned int event)
{
	return random_below(2 * PERIOD_NS);
}

/* sum_exec_runtime stands still between the scheduler's ticks, or the CPU is offline. */
static uint64_t run_steps(unsigned int event)
{
	return event % 4 ? 0 : STEP_NS;
}

/* Has slept, and comes back with a second that no event has seen. */
static uint64_t run_jumps(unsigned int event)
{
	return event % 2000 == 999 ? 1000 * MS : PERIOD_NS;
}

#define EVENTS 20000

static void begin_clock(void)
{
	s.tables->clock.period_ns = PERIOD_NS;
	s.tables->clock.tolerance_ns = TOLERANCE_NS;
}

/*
 * After each event: no more credit than the tolerance and one period; no event stands for more than
 * a part of its debt. At the end, samples and run time agree up to the same.
 */
static void check_run(const struct run *r, uint64_t began_ns)
{
	struct synth_event a = { .credit_ns = began_ns, .ran_ns = began_ns };
	uint64_t paid_ns = 0, periods = 0;

	begin_clock();
	for (unsigned int i = 0; i < EVENTS; i++) {
		int64_t before, after;

		a.ran_ns += i < EVENTS - 1000 ? r->next_ns(i) : PERIOD_NS;
		before = (int64_t)(a.credit_ns - a.ran_ns);
		SYNTHETIC_RUN(&s, event, &a);
		after = (int64_t)(a.credit_ns - a.ran_ns);
		paid_ns += a.ns;
		periods += a.periods;
		cr_assert_eq(a.ns, (uint64_t)a.periods * PERIOD_NS);
		cr_assert_eq(after - before, (int64_t)a.ns);
		cr_assert_leq(after, (int64_t)TOLERANCE_NS + PERIOD_NS, "%s, event %u: credit %lld",
			      r->name, i, (long long)after);
		cr_assert_geq(after, -(int64_t)TOLERANCE_NS - (int64_t)r->most_ns,
			      "%s, event %u: debt %lld", r->name, i, (long long)-after);
		if (before > (int64_t)TOLERANCE_NS)
			cr_assert_eq(a.periods, 0, "%s, event %u in credit: %u", r->name, i,
				     a.periods);
		else if (before >= -(int64_t)TOLERANCE_NS)
			cr_assert_eq(a.periods, 1, "%s, event %u: %u", r->name, i, a.periods);
		else
			cr_assert(a.periods >= 2 && a.ns <= (uint64_t)-before, "%s, event %u: %u",
				  r->name, i, a.periods);
	}
	cr_expect_eq(paid_ns, periods * PERIOD_NS);
	cr_expect_leq(llabs((int64_t)(paid_ns - (a.ran_ns - began_ns))), TOLERANCE_NS + PERIOD_NS,
		      "%s: samples for %llu ns of %llu", r->name, (unsigned long long)paid_ns,
		      (unsigned long long)(a.ran_ns - began_ns));
}

Test(synth_cpu_time, events_stand_for_the_time_that_a_thread_has_run)
{
	static const struct run runs[] = {
		{ "alone", run_alone, PERIOD_NS },	{ "in debt", run_debt, 2 * PERIOD_NS },
		{ "in credit", run_credit, PERIOD_NS }, { "in slices", run_slices, 2 * PERIOD_NS },
		{ "in steps", run_steps, STEP_NS },	{ "in jumps", run_jumps, 1001 * MS },
	};

	srand(1);
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		check_run(&runs[i], 1000 * MS);
		check_run(&runs[i], -5000 * MS); /* sum_exec_runtime wraps on the way */
	}
}

/* On nohz_full CPUs, and in an NMI, nothing is corrected: an event is a period. */
Test(synth_cpu_time, events_without_a_tolerance_are_a_period_each)
{
	struct synth_event a = { .credit_ns = 0 };

	s.tables->clock.period_ns = PERIOD_NS;
	s.tables->clock.tolerance_ns = 0;
	a.credit_ns = a.ran_ns = 1000 * MS;
	SYNTHETIC_RUN(&s, event, &a);
	cr_expect_eq(a.periods, 1);
}

/* --- other events ----------------------------------------------------------------------------- */

static uint64_t weight(struct synth_weight *a, uint64_t cookie, uint64_t count)
{
	a->cookie = cookie;
	a->count = count;
	SYNTHETIC_RUN(&s, weight, a);
	return a->weight;
}

Test(synth_cpu_time, samples_of_an_adapted_event_stand_for_the_events_between_them)
{
	static const uint64_t counts[] = { 1, 10000, 10001, 1ull << 40, UINT64_MAX };
	struct synth_weight a = { .period = 7 };
	uint64_t cookie = PROFIL_COOKIE_ADAPTED | PROFIL_COOKIE_GENERATION, before = 0;

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		cr_expect_eq(weight(&a, cookie, counts[i]), counts[i] - before, "at %llu: %llu",
			     a.count, a.weight);
		before = counts[i];
	}
	cookie +=
		PROFIL_COOKIE_GENERATION; /* another event in its slot, with a counter of its own */
	cr_expect_eq(weight(&a, cookie, 500), 500, "%llu", a.weight);
	cr_expect_eq(weight(&a, cookie, 501), 1, "%llu", a.weight);
}

Test(synth_cpu_time, samples_of_other_events_stand_for_their_period_or_for_one)
{
	struct synth_weight a = { .period = 7 };

	cr_expect_eq(weight(&a, PROFIL_COOKIE_GENERATION, 1000), 7);
	cr_expect_eq(weight(&a, PROFIL_COOKIE_FREQUENCY, 1000), 1);
	cr_expect_eq(a.seen_count, 0);
}

/* --- the tick --------------------------------------------------------------------------------- */

#define PERIODS_MAX 256

/* A tick stands for all that the thread has run since the one before, up to 255 ticks. */
Test(synth_cpu_time, ticks_stand_for_the_time_since_the_one_before)
{
	struct synth_tick a = { .ran_ns = 100 * MS };
	uint64_t before = a.ran_ns;

	srand(2);
	s.tables->clock.epoch = 7;
	SYNTHETIC_RUN(&s, tick, &a);
	cr_expect_eq(a.since, 0);
	cr_expect_eq(a.ns, TICK_NS);
	for (int i = 0; i < EVENTS; i++) {
		static const uint64_t spans[] = { 0, 1, 3 * MS, TICK_NS, TICK_NS - 1, 100 * MS };
		uint64_t ran = i % 7 ? spans[random_below(6)] : random_below(2 * TICK_NS);

		a.ran_ns += ran;
		SYNTHETIC_RUN(&s, tick, &a);
		cr_assert_eq(a.ns, ran, "tick %d: %llu, not %llu", i, a.ns,
			     (unsigned long long)ran);
		cr_assert_eq(a.since, 7);
		cr_assert_eq(a.ticked_ns, a.ran_ns);
		before = a.ran_ns;
	}
	a.ran_ns = before + 3600 * 1000 * MS;
	SYNTHETIC_RUN(&s, tick, &a);
	cr_expect_eq(a.ns, (PERIODS_MAX - 1) * TICK_NS);
}

/* --- thinning --------------------------------------------------------------------------------- */

#define TARGET 5

static uint32_t thin(uint64_t ns)
{
	struct synth_thin a = { .ns = ns, .since = ~0ull, .clock_ns = TICK_NS, .target = TARGET };

	SYNTHETIC_RUN(&s, thin, &a);
	return a.n;
}

static struct profil_target *thin_begin(uint32_t period_ns)
{
	struct profil_target *t = &s.tables->target[TARGET];

	*t = (struct profil_target){ .period_ns = period_ns };
	return t;
}

/* After each sample: as many as whole periods have passed, or one more. */
Test(synth_cpu_time, samples_of_a_target_are_its_periods)
{
	static const uint32_t periods[] = { 10000000, 4000000, 4016064, 999983, 1000000007 };

	srand(3);
	for (size_t k = 0; k < sizeof(periods) / sizeof(periods[0]); k++) {
		const struct profil_target *t = thin_begin(periods[k]);
		uint64_t samples = 0, ran = 0;

		for (int i = 0; i < EVENTS; i++) {
			uint64_t ns = i % 3 ? TICK_NS : random_below(3 * TICK_NS);

			samples += thin(ns);
			ran += ns;
			cr_assert_eq(t->elapsed_ns, ran);
			cr_assert(samples - ran / periods[k] <= 1,
				  "period %u: %llu samples of %llu ns", periods[k],
				  (unsigned long long)samples, (unsigned long long)ran);
		}
	}
}

/* A program in step with the period: the first half of each is in one function. */
Test(synth_cpu_time, samples_are_not_in_step_with_the_program)
{
	static const uint32_t halves[] = { 2, 4, 8 };

	for (size_t k = 0; k < sizeof(halves) / sizeof(halves[0]); k++) {
		uint64_t in[8] = { 0 };

		thin_begin(8 * (uint32_t)MS);
		for (unsigned int i = 0; i < 1000 * halves[k]; i++)
			in[i % halves[k]] += thin(8 * MS / halves[k]);
		for (unsigned int part = 0; part < halves[k]; part++)
			cr_expect_leq(llabs((int64_t)(in[part] - 1000 / halves[k])), 5,
				      "part %u of %u has %llu of 1000 samples", part, halves[k],
				      (unsigned long long)in[part]);
	}
}

/* A sample's time is divided by the threads that run, for a target of latency only. */
Test(synth_cpu_time, latency_is_time_divided_by_running_threads)
{
	struct synth_thin a = {
		.since = ~0ull, .clock_ns = TICK_NS, .target = TARGET, .periods = 1
	};
	struct profil_target *t = thin_begin(TICK_NS);
	uint64_t samples = 0, sum = 0;

	t->latency = s.tables->latency = 1;
	srand(5);
	for (int i = 0; i < EVENTS; i++) {
		a.ns = TICK_NS;
		a.running = 2 + (uint32_t)random_below(6);
		SYNTHETIC_RUN(&s, thin, &a);
		samples += a.n;
		sum += a.ns / a.running;
		cr_assert_eq(t->elapsed_ns, sum);
		cr_assert(samples - sum / TICK_NS <= 1);
	}
	t->latency = 0; /* the clock's period is the target's */
	SYNTHETIC_RUN(&s, thin, &a);
	cr_expect_eq(a.n, 1, "%u", a.n);
	cr_expect_eq(t->elapsed_ns, sum);
}

/* Sets the process of all CPUs. */
static void run_on_all(uint32_t tgid)
{
	int cpus = libbpf_num_possible_cpus();
	uint64_t *value = calloc((size_t)cpus, sizeof(*value));
	uint32_t key = 0;

	for (int i = 0; i < cpus; i++)
		value[i] = tgid; /* the lower half of struct cpu_running */
	cr_assert_eq(bpf_map_update_elem(bpf_map__fd(s.object->maps.on_cpu), &key, value, 0), 0);
	free(value);
}

Test(synth_cpu_time, running_threads_are_the_cpus_of_their_process)
{
	struct synth_running a = { 0 };

	run_on_all(0);
	SYNTHETIC_RUN(&s, running, &a);
	cr_expect_eq(a.n, 1, "the CPU of the sample: %u", a.n);
	run_on_all(a.tgid);
	SYNTHETIC_RUN(&s, running, &a);
	cr_expect_eq(a.n, (uint32_t)libbpf_num_possible_cpus(), "%u", a.n);
	run_on_all(a.tgid + 1);
	SYNTHETIC_RUN(&s, running, &a);
	cr_expect_eq(a.n, 1, "%u", a.n);
}

/* The thread may have run for hours before the target: its first sample is one clock's period. */
Test(synth_cpu_time, an_account_older_than_the_target_is_not_used)
{
	struct synth_thin a = {
		.ns = 3600 * 1000 * MS, .since = 4, .clock_ns = TICK_NS, .target = TARGET
	};
	struct profil_target *t = thin_begin(TICK_NS);

	t->epoch = 5;
	SYNTHETIC_RUN(&s, thin, &a);
	cr_expect_eq(t->elapsed_ns, TICK_NS, "%llu", t->elapsed_ns);
	a.periods = 200; /* of the event's clock, whose period is the target's */
	SYNTHETIC_RUN(&s, thin, &a);
	cr_expect_eq(a.n, 1, "%u", a.n);
	a.since = 5;
	SYNTHETIC_RUN(&s, thin, &a);
	cr_expect_eq(a.n, 200, "%u", a.n);
}
