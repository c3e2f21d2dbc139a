/* restart.c - the daemon is ended, killed and started again, with a known number of samples */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/profil.h>
#include <unistd.h>

#include "profil.h"
#include "synthetic.h"

SYNTHETIC_SUITE(synth_restart, false);

#define BASE 0x10000000ul
#define COUNTERS 1000

static uint32_t buf[COUNTERS];

static void start_profile(void)
{
	struct prof one = { buf, sizeof(buf), BASE, 0x10000 };

	cr_assert_eq(sprofil(&one, 1, NULL, PROF_UINT), 0, "sprofil: %s", strerror(errno));
}

/* @n samples in each counter, and @n in none. */
static void give(uint32_t n)
{
	for (unsigned int i = 0; i <= COUNTERS; i++)
		synthetic_hit(&s, getpid(), BASE + 4ul * i, n);
}

static void expect_all(uint32_t n)
{
	for (unsigned int i = 0; i < COUNTERS; i++)
		cr_assert_eq(buf[i], n, "counter %u is %u, not %u", i, buf[i], n);
}

static void expect_listed(uint64_t total, uint64_t unmatched, uint64_t lost)
{
	struct profil_msg_profile p;

	synthetic_list(&d, getpid(), &p);
	cr_expect_eq(p.total, total, "total %llu, not %llu", p.total, (unsigned long long)total);
	cr_expect_eq(p.unmatched, unmatched, "unmatched %llu, not %llu", p.unmatched,
		     (unsigned long long)unmatched);
	cr_expect_eq(p.lost, lost, "lost %llu, not %llu", p.lost, (unsigned long long)lost);
}

Test(synth_restart, a_killed_daemon_leaves_all_samples_to_the_next)
{
	uint32_t n = 0;

	start_profile();
	for (int round = 0; round < 3; round++) {
		give(2);
		cr_assert_eq(profil_sync(), 0, "%s", strerror(errno));
		daemon_kill(&d);
		give(3); /* without a daemon */
		daemon_restart(&d);
		give(1);
		cr_assert_eq(profil_sync(), 0, "%s", strerror(errno));
		n += 2 + 3 + 1;
		expect_all(n);
		expect_listed((COUNTERS + 1) * (uint64_t)n, n, 0);
	}
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
	expect_all(n);
}

Test(synth_restart, a_daemon_that_ends_writes_all_samples)
{
	start_profile();
	give(4);
	daemon_stop(&d);
	expect_all(4);
	daemon_restart(&d);
	cr_expect(!synthetic_entry(&s, getpid()), "the profile is on");
}
