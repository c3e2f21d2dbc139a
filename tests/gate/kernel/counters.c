/* counters.c - counters of the kernel: each sample in its counter, up to the cap, until the stop */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprofil/dialect.h"
#include "profil.h"
#include "synthetic.h"
#include "tests/vectors/ways.h"

SYNTHETIC_SUITE(synth_counters, false);

#define BASE 0x10000000ul
#define ELSEWHERE 0x20000000ul /* in no region */

static int stop_profile(void)
{
	return sprofil(NULL, 0, NULL, 0);
}

/* --- each sample once ------------------------------------------------------------------------- */

#define COUNTERS 4096
#define SAMPLES 100000

Test(synth_counters, have_each_of_100000_samples)
{
	static uint16_t buf[COUNTERS];
	static unsigned int want[COUNTERS];

	cr_assert_eq(profil(buf, sizeof(buf), BASE, 0x10000), 0, "%s", strerror(errno));
	for (int i = 0; i < SAMPLES; i++) {
		unsigned int bin = (unsigned int)rand() % COUNTERS,
			     n = 1 + (unsigned int)rand() % 3;

		synthetic_hit(&s, getpid(), BASE + 2 * bin + (unsigned int)rand() % 2, n);
		want[bin] += n;
	}
	cr_assert_eq(stop_profile(), 0);
	for (int i = 0; i < COUNTERS; i++)
		cr_expect_eq(buf[i], want[i], "counter %d is %u, not %u", i, buf[i], want[i]);
}

/* total = written + unmatched + lost, with the daemon's own figures. */
Test(synth_counters, and_unmatched_samples_add_up_to_the_total)
{
	static uint16_t buf[16];
	uint64_t given = 0, written = 0, unmatched = 0;
	struct profil_msg_profile p;

	cr_assert_eq(profil(buf, sizeof(buf), BASE, 0x10000), 0, "%s", strerror(errno));
	for (unsigned int i = 0; i < 1000; i++) {
		uint32_t n = 1 + i % 5;

		synthetic_hit(&s, getpid(), i % 3 ? BASE + i % 32 : ELSEWHERE + i, n);
		given += n;
		unmatched += i % 3 ? 0 : n;
	}
	cr_assert_eq(profil_sync(), 0, "%s", strerror(errno));
	synthetic_list(&d, getpid(), &p);
	for (int i = 0; i < 16; i++)
		written += buf[i];
	cr_expect_eq(p.total, given);
	cr_expect_eq(p.unmatched, unmatched);
	cr_expect_eq(p.lost, 0);
	cr_expect_eq(written + unmatched, given);
	cr_assert_eq(stop_profile(), 0);
}

/* --- saturation ------------------------------------------------------------------------------- */

#define NEAR_TOP 0xfffffff0u

/* The daemon is stopped, so that only the kernel adds. */
Test(synth_counters, of_the_kernel_stay_at_the_top)
{
	static uint32_t buf[4];
	struct prof_glibc one = { buf, sizeof(buf), BASE, 0x10000 };
	struct profil_msg_profile p;
	struct profil_target *t;

	cr_assert_eq(sprofil(&one, 1, NULL, PROF_UINT), 0, "%s", strerror(errno));
	t = synthetic_target(&s, getpid());
	cr_assert_eq(kill(d.pid, SIGSTOP), 0);
	synthetic_hit(&s, getpid(), BASE, NEAR_TOP);
	synthetic_hit(&s, getpid(), BASE, 0x20);
	synthetic_hit(&s, getpid(), BASE, 0x20);
	synthetic_hit(&s, getpid(), BASE + 4, 7);
	cr_expect_eq(t->lost, 0x31, "%llu samples were dropped", t->lost);
	cr_assert_eq(kill(d.pid, SIGCONT), 0);
	cr_assert_eq(profil_sync(), 0, "%s", strerror(errno));
	synthetic_list(&d, getpid(), &p);
	cr_expect_eq(buf[0], UINT32_MAX, "the counter is %#x", buf[0]);
	cr_expect_eq(buf[1], 7);
	cr_expect_eq(p.total, (uint64_t)NEAR_TOP + 0x40 + 7);
	cr_expect_eq(p.lost, 0x31, "%llu samples are lost", p.lost);
	cr_assert_eq(stop_profile(), 0);
}

/* With a preset of 3 the buffer has room for @cap - 3 of them; the daemon counts the others. */
static void check_cap(const struct way *w, uint32_t cap, unsigned int width)
{
	const struct vector v = { .dialect = "",
				  .row = w->row,
				  .width = width,
				  .offset = BASE,
				  .scale = 0x8000,
				  .bufsize = 16 };
	union {
		uint16_t u16[8];
		uint32_t u32[4];
	} buf = { .u16 = { 0 } };
	struct profil_msg_profile p;
	uint32_t got;

	if (width == 2)
		buf.u16[0] = 3;
	else
		buf.u32[0] = 3;
	cr_assert_eq(w->start(&v, &buf), 0, "%s: %s", w->name, strerror(errno));
	synthetic_hit(&s, getpid(), BASE, cap - 4);
	cr_assert_eq(profil_sync(), 0);
	got = width == 2 ? buf.u16[0] : buf.u32[0];
	cr_expect_eq(got, cap - 1, "%s: %u, not %u", w->name, got, cap - 1);
	synthetic_hit(&s, getpid(), BASE, 6);
	cr_assert_eq(profil_sync(), 0);
	got = width == 2 ? buf.u16[0] : buf.u32[0];
	cr_expect_eq(got, cap, "%s: %u, not %u", w->name, got, cap);
	if (dialects[w->row].flags & PROFIL_START_STOP_AT_CAP) {
		cr_expect(!synthetic_entry(&s, getpid()), "%s: the profile is on", w->name);
	} else {
		synthetic_list(&d, getpid(), &p);
		cr_expect_eq(p.total, (uint64_t)cap + 2, "%s: %llu", w->name, p.total);
		cr_expect_eq(p.lost, 5, "%s: %llu lost, not 5", w->name, p.lost);
	}
	cr_assert_eq(w->stop(), 0);
}

Test(synth_counters, of_each_dialect_stay_at_its_cap)
{
	static const uint32_t caps[DIALECTS] = {
		[DIALECT_AIX] = 65535,
		[DIALECT_IRIX_USHORT] = 65535,
		[DIALECT_IRIX_UINT] = UINT32_MAX,
		[DIALECT_BSD] = 65535,
		[DIALECT_SOLARIS] = 32767,
		[DIALECT_GLIBC] = 65535,
		[DIALECT_GLIBC_SPROFIL_USHORT] = 65535,
		[DIALECT_GLIBC_SPROFIL_UINT] = UINT32_MAX,
		[DIALECT_V7] = 65535,
	};

	for (size_t i = 0; i < nways; i++)
		check_cap(&ways[i], caps[ways[i].row], caps[ways[i].row] == UINT32_MAX ? 4 : 2);
}

/* --- pcs -------------------------------------------------------------------------------------- */

long pcsample_solaris(uintptr_t samples[], long nsamples);

Test(synth_counters, pcs_arrive_in_order_and_the_rest_is_lost)
{
	static uintptr_t pcs[100];
	struct profil_msg_profile p;

	cr_assert_eq(pcsample_solaris(pcs, 100), 0, "%s", strerror(errno));
	for (uintptr_t i = 0; i < 60; i++)
		synthetic_hit(&s, getpid(), BASE + i, 2);
	cr_assert_eq(profil_sync(), 0, "%s", strerror(errno));
	synthetic_list(&d, getpid(), &p);
	cr_expect_eq(p.total, 120);
	cr_expect_eq(p.lost, 20, "%llu are lost", p.lost);
	cr_expect_eq(pcsample_solaris(pcs, 0), 100);
	for (uintptr_t i = 0; i < 100; i++)
		cr_expect_eq(pcs[i], BASE + i / 2, "pc %zu is %#zx", (size_t)i, (size_t)pcs[i]);
}

/* --- the stop --------------------------------------------------------------------------------- */

/*
 * The sample has read its entry of the process table before the stop, and counts after it. Behind a
 * grace period, which no real sample outlasts, the target is cleared for its next user.
 */
Test(synth_counters, have_no_sample_that_was_in_flight_at_the_stop)
{
	static uint32_t buf[COUNTERS];
	struct prof_glibc one = { buf, sizeof(buf), BASE, 0x10000 };

	for (int round = 0; round < 100; round++) {
		struct synth_hit a = { .pc = BASE, .n = 1000 };
		const struct profil_target *t;
		uint64_t total, epoch;

		memset(buf, 0, sizeof(buf));
		cr_assert_eq(sprofil(&one, 1, NULL, PROF_UINT), 0, "%s", strerror(errno));
		synthetic_hit(&s, getpid(), BASE, 3);
		a.entry = synthetic_entry(&s, getpid());
		t = synthetic_target(&s, getpid());
		epoch = t->epoch;
		total = t->total;
		cr_assert_eq(stop_profile(), 0, "%s", strerror(errno));
		cr_assert_eq(buf[0], 3, "round %d: %u", round, buf[0]);
		SYNTHETIC_RUN(&s, hit, &a);
		cr_assert(t->total == total || t->epoch != epoch,
			  "round %d: a sample was counted after the stop", round);
		cr_assert_eq(sprofil(&one, 1, NULL, PROF_UINT), 0, "%s", strerror(errno));
		cr_assert_eq(stop_profile(), 0, "%s", strerror(errno));
		for (int i = 0; i < COUNTERS; i++)
			cr_assert_eq(buf[i], i ? 0 : 3, "round %d: counter %d is %u", round, i,
				     buf[i]);
	}
}

static void *stop_in_thread(void *arg)
{
	return (void *)(intptr_t)stop_profile();
}

/* More than the daemon writes at once. */
#define MANY (1 << 18)

/*
 * The daemon has taken the first counters of a pass, and waits for its worker. A count that comes
 * to them now, and the stop, must wait for another pass.
 */
Test(synth_counters, have_what_came_behind_a_pass_under_way_at_the_stop)
{
	static uint16_t buf[MANY];
	const volatile struct profil_target *t;
	const volatile uint8_t *dirty;
	pthread_t thread;
	void *ret;

	cr_assert_eq(profil(buf, sizeof(buf), BASE, 0x10000), 0, "%s", strerror(errno));
	t = synthetic_target(&s, getpid());
	dirty = synthetic_dirty(&s, (const struct profil_target *)t);
	synthetic_workers(&d, SIGSTOP);
	for (int i = 0; i < MANY; i += PROFIL_BLOCK_COUNTERS)
		synthetic_hit(&s, getpid(), BASE + 2 * (__u64)i, 1);
	SYNTHETIC_AWAIT(!*dirty); /* the mirror's pass has begun */
	synthetic_hit(&s, getpid(), BASE, 1);
	cr_assert_eq(pthread_create(&thread, NULL, stop_in_thread, NULL), 0);
	SYNTHETIC_AWAIT(t->flags & PROFIL_TARGET_CLOSED);
	synthetic_workers(&d, SIGCONT);
	cr_assert_eq(pthread_join(thread, &ret), 0);
	cr_expect_eq((intptr_t)ret, 0);
	for (int i = 0; i < MANY; i++) {
		int want = i % PROFIL_BLOCK_COUNTERS ? 0 : i ? 1 : 2;

		cr_assert_eq(buf[i], want, "counter %d is %u, not %d", i, buf[i], want);
	}
}
