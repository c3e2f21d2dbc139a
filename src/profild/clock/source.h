/* source.h - the kernel's clocks: perf events, and the timer tick */
#ifndef PROFIL_PROFILD_CLOCK_SOURCE_H
#define PROFIL_PROFILD_CLOCK_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct profil_bpf;

/* --- perf_event.c ----------------------------------------------------------------------------- */

/* The clocks' state in the tables that daemon and BPF programs share. */
struct profil_clock *clock_shared(const struct profil_bpf *skel);

/* One CPU's perf event and its link to @program; -1: the CPU is not online. */
struct cpu_event {
	int event;
	int link;
};

/*
 * Opens an event on @cpu that runs @program for each @period_ns of busy time, by hardware cycles or
 * the kernel's CPU clock. Returns 0 or a negative errno: -ENODEV if @cpu is not online.
 */
int cpu_event_open(struct cpu_event *e, int program, bool cycles, uint64_t period_ns, int cpu);
void cpu_event_close(struct cpu_event *e);

/* Changes the period of the running event. */
int cpu_event_set_period(const struct cpu_event *e, bool cycles, uint64_t period_ns);

/* 0, or a negative errno if the CPUs do not count cycles. */
int cpu_event_check_cycles(void);

/* --- timer_tick.c ----------------------------------------------------------------------------- */

/* The period of the tick. */
uint64_t clock_tick_ns(void);

/* Runs tick_or_exit() on every CPU. Returns a link or a negative errno. */
int clock_tick_link(const struct profil_bpf *skel);

/*
 * Waits until the linked program has recognised the tick's timer; false if it does not in time.
 * Spins, because an idle CPU has no tick.
 */
bool clock_tick_await(const struct profil_bpf *skel);

/* True if some CPUs run without a tick (nohz_full). */
bool clock_tick_missing(void);

/*
 * The value of irq_regs_offset for the BPF programs, from the kernel's @btf; 0: on this kernel the
 * tick cannot distinguish user mode from kernel mode.
 */
struct btf;
uint64_t clock_irq_regs_offset(const struct btf *btf);

/* The same of preempt_count_offset; 0: programs cannot tell interrupts during system calls. */
uint64_t clock_preempt_count_offset(const struct btf *btf);

/* True if the loaded programs have such a value. */
bool clock_tick_knows_mode(const struct profil_bpf *skel);

#endif
