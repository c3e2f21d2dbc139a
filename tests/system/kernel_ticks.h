/* kernel_ticks.h - how many ticks are due, and what the daemon says of them */
#ifndef PROFIL_TEST_KERNEL_TICKS_H
#define PROFIL_TEST_KERNEL_TICKS_H

#include <stdint.h>
#include <sys/profil.h>
#include <sys/types.h>

#include "daemon.h"
#include "../programs/loops.h"

/*
 * A rate that is no multiple, nor a part, of the scheduler's own 100, 250 or 1000 ticks a second:
 * one that is meets every slice of the CPU at the same place, as soon as the machine is busy.
 */
#define TICKS_RATE "1009"
#define TICKS_PERIOD_NS (1000000000 / 1009)

/* So much of a loop is some 250 ticks. */
#define TICKS_SPELL_NS 250000000ull

/*
 * One counter a loop: what glibc's formulas make of these scales for counters of 2 and 4 bytes.
 */
#define TICKS_SCALE_16 (2 * 65536 / LOOP_BYTES)
#define TICKS_SCALE_32 (4 * 65536 / LOOP_BYTES)

/* As profil(), one counter of @buf for each loop of the file that this is in. */
static inline int ticks_profile(unsigned short buf[LOOPS])
{
	return profil(buf, LOOPS * sizeof(*buf), loop_at(0), TICKS_SCALE_16);
}

/* Every profile that there is has been drained once more when this returns. */
void ticks_await_mirror(void);

/*
 * Expects @ticks of @period_ns to be those of @t, but for @percent of them and @few more. Each time
 * that the CPU is taken away, half a tick at most comes or goes at random: n times are a standard
 * deviation of sqrt(n) / 2.
 */
void ticks_expect(unsigned long ticks, const struct loop_time *t, unsigned long period_ns,
		  double percent, double few, const char *what);

/*
 * The same for the ticks of a spell or two. In slices of 3 ms 250 ticks have a standard deviation
 * of 5: the 35 that are allowed are seven of those.
 */
void ticks_expect_spell(unsigned long ticks, const struct loop_time *t, unsigned long period_ns);

/* Asks @d for its LIST. Returns whether the process @pid has a profile of its own, in @out. */
int ticks_list(const struct daemon *d, pid_t pid, struct profil_msg_profile *out);

/* Waits until @d has @n profiles. */
void ticks_await_profiles(const struct daemon *d, unsigned int n);

/* What is to outlive a daemon lies there. */
#define TICKS_BPFFS "/sys/fs/bpf"
void ticks_need_bpffs(void);

/* The path there of what @d calls @name, until the next call. */
const char *ticks_stored(const struct daemon *d, const char *name);

#endif
