/* clock_link.h - from the kernel's clocks to the programs that they run */
#ifndef PROFIL_CLOCK_LINK_H
#define PROFIL_CLOCK_LINK_H

#include <stdbool.h>
#include <stdint.h>

struct profil_bpf;

/* --- clock_event.c: perf events --- */

/*
 * Runs tick_event() on @cpu each @period_ns that it is busy, by its hardware cycles or the kernel's
 * timers. Returns a link, or a negative errno: -ENODEV where @cpu is not online.
 */
int clock_event_link(const struct profil_bpf *skel, bool cycles, uint64_t period_ns, int cpu);

/* 0, or a negative errno where no CPU counts cycles. */
int clock_cycles_check(void);

/* --- clock_tick.c: the timer that a busy CPU takes anyway --- */

/* Its period; and what time it is. */
uint64_t clock_tick_ns(void);
uint64_t clock_now_ns(void);

/* Runs tick_timer() on every CPU. Returns a link or a negative errno. */
int clock_tick_link(const struct profil_bpf *skel);

/*
 * Waits until the program has recognised the timer: says whether it did. There must be a link. The
 * CPU is kept busy, for an idle one has no tick.
 */
bool clock_tick_await(const struct profil_bpf *skel);

/* Says whether some CPUs run without (nohz_full). */
bool clock_tick_missing(void);

#endif
