/* kernel_ticks.h - the expected number of ticks, and the daemon's answers about profiles */
#ifndef PROFIL_TEST_KERNEL_TICKS_H
#define PROFIL_TEST_KERNEL_TICKS_H

#include <criterion/criterion.h>
#include <stdint.h>
#include <sys/profil.h>
#include <sys/types.h>

#include "daemon.h"
#include "profil.h"
#include "tests/programs/loops.h"

/*
 * Neither a multiple nor a fraction of the scheduler's 100, 250 or 1000 ticks a second: on a busy
 * machine such a rate would hit every time slice at the same place.
 */
#define TICKS_RATE "1009"
#define TICKS_PERIOD_NS (1000000000 / 1009)

/* A loop of this CPU time makes some 250 ticks. */
#define TICKS_SPELL_NS 250000000ull

/* With these scales glibc's formulas have one counter for each loop, of 2 or of 4 bytes. */
#define TICKS_SCALE_16 (2 * 65536 / LOOP_BYTES)
#define TICKS_SCALE_32 (4 * 65536 / LOOP_BYTES)

/* Calls profil() with one counter of @buf for each loop of the file that includes this. */
static inline int ticks_profile(unsigned short buf[LOOPS])
{
	return profil(buf, LOOPS * sizeof(*buf), loop_at(0), TICKS_SCALE_16);
}

/*
 * Runs loop @n of the caller until @came, the event that a sample has come. Returns whether it
 * came.
 *
 * How many samples a time has is the scheduler's choice, so a test of the gate waits for one and
 * then compares counts with each other. The limit is in CPU time of the thread, in which
 * bpf/cpu_time.bpf.h has corrected a missing sample 1000 times: it is exceeded only when none is
 * counted at all.
 */
#define TICKS_NONE_NS 10000000000ull
#define TICKS_SPUN(n, came)                                                \
	({                                                                 \
		uint64_t spun_ns_ = 0;                                     \
		bool came_;                                                \
                                                                           \
		while (!(came_ = (came) != 0) && spun_ns_ < TICKS_NONE_NS) \
			spun_ns_ += loop_for(n, 1000000);                  \
		came_;                                                     \
	})

/* Runs loop @n of the caller until @came; the test fails when that event does not come. */
#define TICKS_SPIN(n, came) \
	cr_assert(TICKS_SPUN(n, came), "loop %u used 10 s of CPU time without: %s", n, #came)

/* @counter after a request to write the samples so far; 0: the daemon refuses it. */
#define TICKS_SYNCED(counter) (profil_sync() == 0 ? *(volatile typeof(counter) *)&(counter) : 0)

/* The samples inside of the regions of the caller's profile, as LIST has them; 0: no profile. */
unsigned long long ticks_matched(const struct daemon *d);

/*
 * Expects LIST to have the caller's profile, with as many binned samples as its buffers, @binned.
 * Returns how many are lost.
 */
unsigned long long ticks_conserved(const struct daemon *d, unsigned long long binned);

/* The rate of the timer tick, which advances the coarse clocks. */
unsigned long ticks_timer_hz(void);

/* Waits until the daemon has drained every profile once more. */
void ticks_await_mirror(void);

/*
 * The night's statistical test: expects @ticks of @period_ns to be those of the CPU time @t,
 * within @percent and @few more. Each time slice adds or loses up to half a tick at random, so n
 * slices have a standard deviation of at most sqrt(n) / 2. A caller states how many deviations its
 * limits are: four are exceeded by chance once in 16,000 runs, five once in 1.7 million, six once
 * in 500 million.
 */
void ticks_expect(unsigned long ticks, const struct loop_time *t, unsigned long period_ns,
		  double percent, double few, const char *what);

/*
 * Expects that the numbers of @batch differ from @expected by less than @effect, by
 * tests/lib/verdict.py: their own deviation, in up to three looks. @batch returns one of @factor
 * times the samples that it needs, at least 200, or NaN. Where there is no verdict, the test ends
 * here.
 */
void ticks_equivalent(double (*batch)(unsigned int factor, void *arg), void *arg, double expected,
		      double effect, const char *what);

/*
 * A thread's ticks of TICKS_PERIOD_NS may differ by so many from its CPU time without being
 * corrected: a scheduler tick at 250 Hz and one period (bpf/cpu_time.bpf.h). Where a third program
 * competes for the CPUs, that is no chance: most threads are near that limit.
 */
#define TICKS_TOLERANCE 5

/*
 * For the ticks of one or two TICKS_SPELL_NS. 250 ticks in slices of 3 ms have a standard deviation
 * of 5: the limits, 10 % and 10 ticks, are seven of those.
 */
void ticks_expect_spell(unsigned long ticks, const struct loop_time *t, unsigned long period_ns);

/*
 * For some 100 ticks of TICKS_PERIOD_NS. In 40 slices, on a busy machine, they have a standard
 * deviation of 4: the limits, 10 % and 15 ticks, are six of those.
 */
void ticks_expect_100(unsigned long ticks, const struct loop_time *t, const char *what);

/* Asks @d for its LIST. Returns whether the process @pid has a profile of its own, in @out. */
int ticks_list(const struct daemon *d, pid_t pid, struct profil_msg_profile *out);

/* Waits until @d has @n profiles. */
void ticks_await_profiles(const struct daemon *d, unsigned int n);

/* Mounts the bpffs in which daemons pin what outlives them, unless it is mounted. */
#define TICKS_BPFFS "/sys/fs/bpf"
void ticks_need_bpffs(void);

/* The path of the pin that @d calls @name; valid until the next call. */
const char *ticks_stored(const struct daemon *d, const char *name);

#endif
