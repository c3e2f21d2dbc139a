/* timer_tick.c - the timer tick as a clock: the interrupt that a busy CPU takes anyway */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "source.h"
#include "profild/config.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "profild/skeleton.h"

/* The tick advances the coarse clocks, so their resolution is its period. */
uint64_t clock_tick_ns(void)
{
	struct timespec ts;

	clock_getres(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

int clock_tick_link(const struct profil_bpf *skel)
{
	int link = bpf_raw_tracepoint_open("hrtimer_expire_exit",
					   bpf_program__fd(skel->progs.tick_or_exit));

	return link < 0 ? -errno : link;
}

/* One tick is enough, but this task may not run on its CPU for several. */
#define AWAITED_TICKS 25

bool clock_tick_await(const struct profil_bpf *skel)
{
	const volatile __u64 *seen = &skel->bss->tables.clock.tick_function;
	uint64_t end = now_ns() + AWAITED_TICKS * clock_tick_ns();

	while (!*seen && now_ns() < end)
		;
	return *seen;
}

bool clock_tick_missing(void)
{
	__cleanup(fclosep) FILE *f = fopen("/sys/devices/system/cpu/nohz_full", "re");
	int first = f ? fgetc(f) : EOF;

	return isdigit(first); /* a list of CPUs; "(null)" or nothing where there are none */
}

/* The offset of variable @name in the DATASEC @t; -1: not found. */
static long offset_of_variable(const struct btf *btf, const struct btf_type *t, const char *name)
{
	const struct btf_var_secinfo *variable = btf_var_secinfos(t);

	for (int i = 0; i < btf_vlen(t); i++) {
		const struct btf_type *type = btf__type_by_id(btf, variable[i].type);

		if (!strcmp(btf__name_by_offset(btf, type->name_off), name))
			return variable[i].offset;
	}
	return -1;
}

static long offset_of_member(const struct btf *btf, const struct btf_type *t, const char *name)
{
	for (__u16 i = 0; i < btf_vlen(t); i++) {
		if (!strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), name))
			return btf_member_bit_offset(t, i) / 8;
	}
	return -1;
}

/*
 * The tick's timer, tick_cpu_sched.sched_timer, and __irq_regs are per-CPU variables, so their
 * distance is the same on every CPU. The program gets the address of the timer.
 */
uint64_t clock_irq_regs_offset(const struct btf *btf)
{
	int section = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
	int sched = btf__find_by_name_kind(btf, "tick_sched", BTF_KIND_STRUCT);
	long timer = -1, regs = -1, member = -1;

	if (section > 0 && sched > 0) {
		const struct btf_type *t = btf__type_by_id(btf, (__u32)section);

		regs = offset_of_variable(btf, t, "__irq_regs");
		timer = offset_of_variable(btf, t, "tick_cpu_sched");
		member = offset_of_member(btf, btf__type_by_id(btf, (__u32)sched), "sched_timer");
	}
	return regs < 0 || timer < 0 || member < 0 ? 0 : (uint64_t)(regs - timer - member);
}

/*
 * __preempt_count is a variable of each CPU; from Linux 6.2 to 6.14 it is a member of pcpu_hot. The
 * program finds the CPU's runqueues.
 */
uint64_t clock_preempt_count_offset(const struct btf *btf)
{
	int section = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
	int hot = btf__find_by_name_kind(btf, "pcpu_hot", BTF_KIND_STRUCT);
	long count = -1, member = 0, queues = -1;

	if (section > 0) {
		const struct btf_type *t = btf__type_by_id(btf, (__u32)section);

		queues = offset_of_variable(btf, t, "runqueues");
		count = offset_of_variable(btf, t, "__preempt_count");
		if (count < 0 && hot > 0) {
			count = offset_of_variable(btf, t, "pcpu_hot");
			member = offset_of_member(btf, btf__type_by_id(btf, (__u32)hot),
						  "preempt_count");
		}
	}
	return count < 0 || member < 0 || queues < 0 ? 0 : (uint64_t)(count + member - queues);
}

bool clock_tick_knows_mode(const struct profil_bpf *skel)
{
	return skel->rodata->irq_regs_offset != 0;
}
