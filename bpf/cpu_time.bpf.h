/* cpu_time.bpf.h - how much CPU time a sample stands for, and how many samples that is for a target
 *
 * A target gets one sample for each period_ns of CPU time that its threads use. Two clocks sample
 * the thread that runs on a CPU:
 *
 *	tick	the timer interrupt that a busy CPU takes anyway, at CONFIG_HZ
 *	event	one perf event per CPU, at the fastest rate that any target wants (tables.clock)
 *
 * Among threads that take turns both are biased: a turn begins and ends with the
 * timer, so a thread that always yields before the timer is never sampled, and the sampled thread
 * has not run for the whole period. The scheduler's sum_exec_runtime is what each thread has really
 * run. It is exact after the tick, but it moves in steps of the scheduler's tick, too coarse for a
 * faster event. Hence two accounts, both in the thread's task storage (struct profil_thread). The
 * first thread of a process that profiles itself has its event account in the target, which a
 * sample reads anyway.
 *
 * Tick: the account of a thread is closed at both ends, so that its samples stand for all CPU time
 * that it uses. The first sample stands for all of that since the thread began, each further one
 * for the time since the previous tick (ticked_ns), and the end of the thread for the rest
 * (thread_end.bpf.h). Of a thread that is older than the target, the CPU time before its first tick
 * is not known: first_time() takes the least of the bounds.
 *
 * Event: a sample stands for one period of the event, as long as events and scheduler agree.
 * credit_ns is the CPU time that the thread's events have stood for:
 *
 *	credit	credit_ns > sum_exec_runtime: more samples than CPU time
 *	debt	credit_ns < sum_exec_runtime: fewer
 *
 * Up to tables.clock.tolerance_ns, one step of sum_exec_runtime and one event, both are ignored.
 * Beyond it, an event in credit stands for 0 periods, and one in debt for two or more. A debt of
 * many periods is paid in parts, so that it is not all counted at one pc. With a tolerance of 0
 * each event stands for one period: hardware cycles arrive in an NMI, which has no task storage,
 * and on nohz_full CPUs sum_exec_runtime may stand still for long.
 *
 * Thinning: each target takes its share of the clock's samples. elapsed_ns is the CPU time that the
 * target's samples have stood for. Each period of it has one counting moment, and the sample that
 * passes it is counted. The moment moves by the golden ratio from one period to the next, so that
 * no periodic program stays in step with it, and threads that take turns get a share each. A target
 * whose period is the event's own needs no thinning.
 *
 * Epochs: tables.clock.epoch counts the targets started so far; target->epoch is a target's number,
 * and a thread's account has the epoch of its latest sample. An account older than the target is
 * not used: the thread may have run for hours without a sample. On the event its first sample
 *stands for one period of the clock, and the account starts over.
 *
 * The arithmetic is apart from the reads of the kernel's memory: tick_settle(), first_time(),
 * rest_settle(), event_settle() and thin() take run times as arguments, and tests call them with
 * times of their own.
 */
#ifndef PROFIL_BPF_CPU_TIME_BPF_H
#define PROFIL_BPF_CPU_TIME_BPF_H

#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "core/shared_maps.h"
#include "kernel.bpf.h"
#include "maps.bpf.h"
#include "running.bpf.h"

/* The period of the timer tick. */
const volatile __u64 tick_ns;

/* Upper bound on the periods of one sample: no thread puts minutes of CPU time on one pc. */
#define PERIODS_MAX 256

/* One event pays 1/DEBT_PARTS of a debt of many periods. */
#define DEBT_PARTS 16

/* The CPU time that a sample stands for. */
struct cpu_time {
	__u64 ns;
	__u64 since;	/* epoch of the thread's previous sample; 0: this is its first */
	__u32 clock_ns; /* the clock's own period */
	__u32 periods;	/* of the event; 0: the clock is the tick */
};

static __always_inline struct profil_thread *thread_of(struct task_struct *task)
{
	return bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* --- the tick --------------------------------------------------------------------------------- */

/* The end of @thread's account moves to @ran_ns of CPU time: a tick. */
static __always_inline void tick_settle(struct cpu_time *t, struct profil_thread *thread,
					__u64 ran_ns)
{
	__u64 most_ns = (PERIODS_MAX - 1) * tick_ns;

	*t = (struct cpu_time){ .ns = tick_ns, .clock_ns = (__u32)tick_ns };
	if (!thread)
		return;
	t->since = thread->tick_epoch;
	if (t->since)
		t->ns = ran_ns > thread->ticked_ns ? ran_ns - thread->ticked_ns : 0;
	if (t->ns > most_ns)
		t->ns = most_ns;
	thread->ticked_ns = ran_ns;
	thread->tick_epoch = tables.clock.epoch;
}

/*
 * The CPU time that the first tick of a thread stands for, for a target that started at
 * @started_ns: all that the thread has used, if it began then or later. All times are of one clock.
 */
static __always_inline __u64 first_time(__u64 ran_ns, __u64 born_ns, __u64 started_ns, __u64 now_ns)
{
	__u64 most_ns = (PERIODS_MAX - 1) * tick_ns;

	if (born_ns < started_ns) {
		most_ns = now_ns - started_ns;
		if (most_ns > tick_ns)
			most_ns = tick_ns;
	}
	return ran_ns < most_ns ? ran_ns : most_ns;
}

/*
 * The end of @thread's account moves to @ran_ns: the thread ends. Returns the CPU time since its
 * latest tick. @ran_ns may be an estimate that was too high, or be less than an earlier one.
 */
static __always_inline __u64 rest_settle(struct profil_thread *thread, __u64 ran_ns)
{
	__u64 rest_ns = ran_ns - thread->ticked_ns;

	if (ran_ns <= thread->ticked_ns)
		return 0;
	thread->ticked_ns = ran_ns;
	return rest_ns;
}

/* CLOCK_MONOTONIC minus the scheduler's clock, at each CPU's latest tick. */
#define CLOCK_CPUS 1024
static volatile __u64 cpu_clock_ns[CLOCK_CPUS];

/*
 * The program runs after the tick's own function, in which the scheduler has brought
 * sum_exec_runtime and exec_start up to date.
 */
static __always_inline void tick_time(struct cpu_time *t, struct task_struct *task)
{
	struct profil_thread *thread = thread_of(task);

	tick_settle(t, thread, task->se.sum_exec_runtime);
	cpu_clock_ns[bpf_get_smp_processor_id() % CLOCK_CPUS] =
		bpf_ktime_get_ns() - task->se.exec_start;
}

/*
 * The CPU time of the running @task until now. The scheduler's sum is as of its latest tick or
 * switch, at exec_start; what has been added since is known where the CPU has had a tick.
 */
static __always_inline __u64 ran_until_now(const struct task_struct *task)
{
	__u64 clock_ns = cpu_clock_ns[bpf_get_smp_processor_id() % CLOCK_CPUS];
	__u64 more_ns = bpf_ktime_get_ns() - clock_ns - task->se.exec_start;

	return task->se.sum_exec_runtime + (clock_ns && more_ns <= tick_ns ? more_ns : 0);
}

/* --- perf events ------------------------------------------------------------------------------ */

/* The periods of an event whose thread is in credit or debt beyond the tolerance. */
static __attribute__((noinline)) __u32 periods_to_correct(__s64 credit_ns, __s64 tolerance_ns,
							  __u32 period_ns)
{
	__u64 n = 2;

	if (credit_ns > 0)
		return 0;
	if (period_ns)
		n += (__u64)(-tolerance_ns - credit_ns) / period_ns / DEBT_PARTS;
	return n < PERIODS_MAX ? n : PERIODS_MAX;
}

/* Adds one event to the account (credit_ns) of a thread that has run for @ran_ns. */
static __always_inline void event_settle(struct cpu_time *t, __u64 *account_ns, __u64 ran_ns)
{
	__s64 tolerance_ns = tables.clock.tolerance_ns, credit_ns = *account_ns - ran_ns;

	if ((__u64)(credit_ns + tolerance_ns) > 2 * (__u64)tolerance_ns) {
		t->periods = periods_to_correct(credit_ns, tolerance_ns, t->clock_ns);
		t->ns = (__u64)t->periods * t->clock_ns;
	}
	*account_ns += t->ns;
}

static __always_inline void event_begin(struct cpu_time *t)
{
	*t = (struct cpu_time){ .clock_ns = tables.clock.period_ns, .periods = 1 };
	t->ns = t->clock_ns;
}

/* @target is one of the thread's; its epoch says whether the thread's account is valid. */
static __always_inline void event_time(struct cpu_time *t, struct task_struct *task,
				       const struct profil_target *target)
{
	__u64 ran_ns = task->se.sum_exec_runtime;
	struct profil_thread *thread;

	event_begin(t);
	thread = tables.clock.tolerance_ns ? thread_of(task) : NULL;
	if (!thread)
		return;
	t->since = thread->event_epoch;
	thread->event_epoch = tables.clock.epoch;
	if (t->since < target->epoch)
		thread->credit_ns = ran_ns;
	event_settle(t, &thread->credit_ns, ran_ns);
}

/* The same by the account in @target, the process's own profile, of its first thread @task. */
static __always_inline void event_time_own(struct cpu_time *t, const struct task_struct *task,
					   struct profil_target *target)
{
	__u64 ran_ns = task->se.sum_exec_runtime;

	event_begin(t);
	if (!tables.clock.tolerance_ns)
		return;
	if (target->credit_ns)
		t->since = ~0ull;
	else
		target->credit_ns = ran_ns;
	event_settle(t, &target->credit_ns, ran_ns);
}

/* --- targets ---------------------------------------------------------------------------------- */

#define GOLDEN_RATIO 2654435769u /* of 2^32 */

/* How many samples are due in the first @ns of a target's CPU time. */
static __always_inline __u64 samples_until(__u64 ns, __u32 period_ns)
{
	__u64 periods = ns / period_ns;
	__u64 moment = (__u64)((__u32)periods * GOLDEN_RATIO) * period_ns >> 32;

	return periods + (ns - periods * period_ns > moment);
}

/* Advances *@elapsed_ns by @ns. Returns how many samples are due for that. */
static __always_inline __u64 thin(__u64 *elapsed_ns, __u32 period_ns, __u64 ns)
{
	__u64 from;

	if (!period_ns)
		return 0;
	from = __sync_fetch_and_add(elapsed_ns, ns);
	return samples_until(from + ns, period_ns) - samples_until(from, period_ns);
}

/* How many samples of @target, of latency, @ns of CPU time are. Its stack is not the caller's. */
static __attribute__((noinline)) __u32 latency_samples(struct profil_target *target, __u64 ns)
{
	return (__u32)thin(&target->elapsed_ns, target->period_ns, running_share(ns));
}

/* How many samples of @target a clock's sample of CPU time @t is; @first_ns: see first_time(). */
static __always_inline __u32 samples_for(struct profil_target *target, const struct cpu_time *t,
					 __u64 first_ns)
{
	bool known = t->since >= target->epoch;

	if (*(volatile __u32 *)&tables.latency && target->latency)
		return latency_samples(target, known ? t->ns : first_ns);
	if (t->periods && target->period_ns == t->clock_ns)
		return known ? t->periods : 1;
	return (__u32)thin(&target->elapsed_ns, target->period_ns, known ? t->ns : first_ns);
}

#endif
