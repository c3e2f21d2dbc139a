/* soak.c - thousands of short profiles beside many long ones, of users at their quota and one below
 * it
 *
 * PROFIL_TEST_PROFILES: how many short profiles. PROFIL_TEST_LIVE: how many long ones.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/profil.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/lib/daemon.h"
#include "tests/lib/neighbour.h"
#include "profil.h"
#include "tests/lib/users.h"

#define USERS 16
#define USER 60020 /* and the next ones */
#define GUEST 60019
#define CHURNERS 2
#define LIVE_MAX 4000
#define BASE 0x400000ul
#define TICKS "0x400000 3\n0x400002\n"

static struct daemon d;
static char quota[16];
static int begun[2]; /* a byte from each process whose profile is on */
static int gate[2];  /* closed when the processes shall exit */
static pid_t live[LIVE_MAX];

static unsigned int all_live(void)
{
	unsigned int n = (unsigned int)number_from_env("PROFIL_TEST_LIVE", 1024);

	return n < LIVE_MAX ? n / USERS * USERS : LIVE_MAX;
}

/* The quota is the number of long profiles of a user, so that every user is at it. */
static void start(void)
{
	static const char *args[] = { "--rate", "1009", "--user-profiles", quota, "--user-requests",
				      "100000", NULL };

	snprintf(quota, sizeof(quota), "%u", all_live() / USERS);
	daemon_start(&d, daemon_over_kernel() ? NULL : TICKS, args);
	cr_assert(pipe(begun) == 0 && pipe(gate) == 0);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(soak, .init = start, .fini = stop);

/* Has a profile until the gate closes. */
static int live_on(unsigned int unused)
{
	static unsigned short buf[256];
	char end;

	close(gate[1]);
	if (profil(buf, sizeof(buf), BASE, 65536) < 0)
		return errno;
	return write(begun[1], "", 1) != 1 || read(gate[0], &end, 1) != 0;
}

/* Starts and stops @times profiles; over replay the counts of each are exact. */
static int churn(unsigned int times)
{
	static unsigned short buf[16];

	for (unsigned int i = 0; i < times; i++) {
		memset(buf, 0, sizeof(buf));
		while (profil(buf, sizeof(buf), BASE, 65536) < 0) {
			if (errno != EAGAIN) /* at its quota until an RCU grace period is over */
				return errno;
		}
		if (sprofil(NULL, 0, NULL, 0) < 0)
			return 1;
		if (!daemon_over_kernel() && (buf[0] != 3 || buf[1] != 1))
			return 2;
	}
	return 0;
}

static void churn_all(unsigned int times)
{
	pid_t pid[CHURNERS];

	for (unsigned int i = 0; i < CHURNERS; i++)
		pid[i] = users_run(GUEST, churn, times / CHURNERS);
	for (unsigned int i = 0; i < CHURNERS; i++)
		users_expect_end(pid[i], 0, "a client with short profiles");
}

/* More processes than a user may have connections. */
#define CROWD 96
#define CROWD_TIMES 20

Test(soak, user_at_its_limit_of_connections_is_always_served)
{
	pid_t pid[CROWD];

	for (unsigned int i = 0; i < CROWD; i++)
		pid[i] = users_run(GUEST, churn, CROWD_TIMES);
	for (unsigned int i = 0; i < CROWD; i++)
		users_expect_end(pid[i], 0, "a client of a crowd");
}

static void live_all(void)
{
	unsigned int n = all_live();
	char byte;

	for (unsigned int i = 0; i < n; i++)
		live[i] = users_run(USER + i % USERS, live_on, 0);
	for (unsigned int i = 0; i < n; i++)
		cr_assert_eq(read(begun[0], &byte, 1), 1, "%u of %u profiles", i, n);
	for (unsigned int i = 0; i < USERS; i++)
		users_expect_end(users_run(USER + i, live_on, 0), EAGAIN,
				 "one more profile of a user at its quota");
}

static void let_go(void)
{
	close(gate[1]);
	for (unsigned int i = 0; i < all_live(); i++)
		users_expect_end(live[i], 0, "a client with a long profile");
}

/* Waits until the daemon has removed ended profiles and has at most @profiles; returns their
 * number. */
static unsigned int status_profiles(unsigned int profiles)
{
	struct profil_msg_status status;

	alarm(60);
	do
		client_status(&d, &status);
	while (status.profiles > profiles);
	alarm(0);
	return status.profiles;
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* At most so many halves: the number of ended profiles that wait for removal varies, and with it
 * the peak of memory. */
#define HALVES 5

/*
 * After the first half the daemon has reached its full size: the second half must not add to it,
 * or, if it had a new peak, one of the next halves. A leak of 5 bytes a profile would grow in all
 * of them. The neighbour, one more user, must get all its ticks.
 */
Test(soak, short_profiles_leak_nothing, .timeout = 3600)
{
	unsigned int times = (unsigned int)number_from_env("PROFIL_TEST_PROFILES", 30000),
		     n = all_live(), fds[2];
	unsigned int others = daemon_over_kernel();
	double began;
	long kib[2] = { 0 };

	if (getuid() != 0)
		cr_skip_test("only root can be seventeen users");
	live_all();
	if (others)
		neighbour_start(&d);
	began = seconds();
	churn_all(times / 2);
	cr_assert_eq(status_profiles(n + others), n + others);
	fds[0] = daemon_descriptors(&d, ~0u);
	kib[1] = daemon_kib(&d);
	for (int half = 1; half < HALVES && (half == 1 || kib[1] > kib[0] + DAEMON_KIB_MORE);
	     half++) {
		churn_all(times - times / 2);
		cr_assert_eq(status_profiles(n + others), n + others);
		kib[0] = kib[1];
		kib[1] = daemon_kib(&d);
	}
	fds[1] = daemon_descriptors(&d, fds[0]);
	printf("%u profiles or more came and went in %.1f s over %u of %d users at their quota; %u "
	       "descriptors after half of them, %u after all; %ld KiB and %ld KiB\n",
	       times, seconds() - began, n, USERS, fds[0], fds[1], kib[0], kib[1]);
	fflush(stdout);
	cr_expect_leq(fds[1], fds[0]);
	cr_expect_leq(kib[1], kib[0] + DAEMON_KIB_MORE);
	if (others)
		neighbour_stop(&d);
	let_go();
	cr_expect_eq(status_profiles(0), 0);
}
