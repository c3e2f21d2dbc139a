/* kernel_flood.c - a user at its limits of connections, requests or profiles does not affect others
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/profil.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/neighbour.h"
#include "tests/lib/users.h"

#define ATTACKER 60001
#define ATTACKERS 3
#define CONNECTIONS 64 /* the daemon's default limit for a user */
#define SILENCE_MS 30000

static struct daemon d;

static void start(void)
{
	static const char *args[] = { "--rate",
				      TICKS_RATE,
				      "--user-profiles",
				      "2",
				      "--user-regions",
				      "8",
				      "--user-bins",
				      "4096",
				      "--user-requests",
				      "200",
				      NULL };

	daemon_start(&d, NULL, args);
	neighbour_start(&d);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(kernel_flood, .init = start, .fini = stop);

/* Another user, whose first request comes during the flood, is served. */
static void another_is_served(void)
{
	static unsigned short buf[LOOPS];
	struct loop_time t = { 0 };

	cr_assert_eq(profil(buf, sizeof(buf), loop_at(0), TICKS_SCALE_16), 0, "profil: %s",
		     strerror(errno));
	loop_timed(&t, 3, TICKS_SPELL_NS);
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
	ticks_expect_spell(buf[3], &t, TICKS_PERIOD_NS);
}

/* --- silent connections ----------------------------------------------------------------------- */

static int flooded[2]; /* a byte from each attacker that has all its connections */

static int flood(unsigned int most)
{
	int sock[CONNECTIONS + 1];
	struct profil_msg_hello hello;
	unsigned int n = 0, closed = 0;

	while (n <= most && (sock[n] = client_dial(&d, &hello)) >= 0)
		n++;
	if (n != most || write(flooded[1], "", 1) != 1)
		return 1;
	for (unsigned int i = 0; i < n; i++) {
		struct pollfd end = { .fd = sock[i], .events = POLLIN };
		char byte;

		closed += poll(&end, 1, SILENCE_MS) == 1 && read(sock[i], &byte, 1) == 0;
	}
	return closed == n ? 0 : 2;
}

/* The daemon refuses connections beyond the limit, and closes silent ones. */
Test(kernel_flood, silent_connections_are_limited_and_closed)
{
	pid_t pid[ATTACKERS];
	char byte;

	cr_assert_eq(pipe2(flooded, O_CLOEXEC), 0);
	for (unsigned int i = 0; i < ATTACKERS; i++)
		pid[i] = users_run(ATTACKER + i, flood, CONNECTIONS);
	close(flooded[1]);
	for (unsigned int i = 0; i < ATTACKERS; i++)
		cr_assert_eq(read(flooded[0], &byte, 1), 1, "%u of %u attackers", i, ATTACKERS);
	another_is_served();
	for (unsigned int i = 0; i < ATTACKERS; i++)
		users_expect_end(pid[i], 0, "an attacker");
	neighbour_stop(&d);
}

static int come_and_go(unsigned int times)
{
	struct profil_msg_hello hello;

	for (unsigned int i = 0; i < times; i++) {
		int sock = client_dial(&d, &hello);

		closep(&sock);
	}
	return 0;
}

Test(kernel_flood, others_are_served_while_connections_come_and_go)
{
	pid_t pid[ATTACKERS];

	for (unsigned int i = 0; i < ATTACKERS; i++)
		pid[i] = users_run(ATTACKER + i, come_and_go, 3000);
	another_is_served();
	for (unsigned int i = 0; i < ATTACKERS; i++)
		users_expect_end(pid[i], 0, "an attacker");
	neighbour_stop(&d);
}

/* --- requests --------------------------------------------------------------------------------- */

/*
 * 200 requests a second are granted, with a burst of a second's worth. A STOP is always granted and
 * does not count.
 */
static int ask_on_and_on(unsigned int seconds)
{
	struct profil_msg_hello hello;
	__cleanup(closep) int sock = client_dial(&d, &hello);
	struct profil_msg_self sync = { .cookie_addr = 16 }, end = { .cookie_addr = 16 };
	unsigned int granted = 0, refused = 0;
	uint64_t began = cpu_ns(CLOCK_MONOTONIC), took;

	wire_header(&sync.h, PROFIL_MSG_SYNC, sizeof(sync), 0, 0);
	wire_header(&end.h, PROFIL_MSG_STOP, sizeof(end), 0, 0);
	do {
		int err = client_try(sock, &sync.h, NULL, 0);

		granted += err == 0;
		refused += err == EAGAIN;
		if (client_try(sock, &end.h, NULL, 0) != 0)
			return 1;
		took = cpu_ns(CLOCK_MONOTONIC) - began;
	} while (took < seconds * 1000000000ull || !refused);
	if (granted < 200)
		return 2;
	return granted <= 200 * (took / 1e9 + 1) + 1 ? 0 : 3;
}

Test(kernel_flood, requests_of_a_user_are_limited_and_stops_are_not)
{
	pid_t pid[ATTACKERS];

	for (unsigned int i = 0; i < ATTACKERS; i++)
		pid[i] = users_run(ATTACKER + i, ask_on_and_on, 2);
	another_is_served();
	for (unsigned int i = 0; i < ATTACKERS; i++)
		users_expect_end(pid[i], 0, "an attacker");
	neighbour_stop(&d);
}

/* --- profiles, regions, bins ------------------------------------------------------------------ */

/* Starts a profile of @n regions of @nbins each; returns the errno, or CLIENT_CUT_OFF. */
static int start_so_many(unsigned int n, __u32 nbins)
{
	static struct {
		struct profil_msg_start m;
		struct profil_msg_region region[16];
	} s;
	static unsigned short buf[8192];
	struct profil_msg_hello hello;
	__cleanup(closep) int sock = client_dial(&d, &hello);

	s.m = (struct profil_msg_start){
		.cookie_addr = (unsigned long)hello.cookie, .width = 2, .cap = 65535, .nregions = n
	};
	for (unsigned int i = 0; i < n; i++)
		s.region[i] = (struct profil_msg_region){
			.lo = 4096 * i,
			.x = { .base = 4096 * i, .span = 2 * nbins, .mul = 1, .nbins = nbins },
			.addr = (unsigned long)buf,
			.owner = i,
		};
	wire_header(&s.m.h, PROFIL_MSG_START, sizeof(s.m), sizeof(s.region[0]), n);
	return client_try(sock, &s.m.h, NULL, 0);
}

static int start_regions(unsigned int n)
{
	return start_so_many(n, 1);
}

static int start_bins(unsigned int n)
{
	return start_so_many(1, n);
}

/* The previous process stays charged until the kernel has released its profile. */
static void expect_next(int (*fn)(unsigned int), unsigned int n, int err, const char *what)
{
	int seen = EAGAIN;

	alarm(60);
	while (seen == EAGAIN)
		seen = users_wait(users_run(ATTACKER, fn, n));
	alarm(0);
	cr_expect_eq(seen, err, "%s: %s", what, strerror(seen));
}

/* The end of a process discharges its profile: the next one may have as much. */
Test(kernel_flood, regions_and_bins_of_a_user_are_limited)
{
	for (int i = 0; i < 2; i++) {
		users_expect_end(users_run(ATTACKER, start_regions, 9), EAGAIN, "9 regions");
		expect_next(start_regions, 8, 0, "8 regions");
		expect_next(start_bins, 4097, ENOMEM, "4097 bins");
		expect_next(start_bins, 4096, 0, "4096 bins");
	}
	cr_expect_eq(start_regions(9), 0, "root has no such limit");
	cr_expect_eq(start_bins(4097), 0, "root has no such limit");
	neighbour_stop(&d);
}

static int held[2], begun[2];

static int start_and_hold(unsigned int regions)
{
	int err = start_regions(regions);
	char end;

	close(held[1]);
	if (write(begun[1], "", 1) != 1 || read(held[0], &end, 1) != 0)
		return 98;
	return err;
}

/* Each process of a user counts as a profile. */
Test(kernel_flood, profiles_of_a_user_are_limited)
{
	pid_t pid[3];
	char byte;

	cr_assert(pipe2(held, O_CLOEXEC) == 0 && pipe2(begun, O_CLOEXEC) == 0);
	for (unsigned int i = 0; i < 3; i++) {
		pid[i] = users_run(ATTACKER, start_and_hold, 1);
		cr_assert_eq(read(begun[0], &byte, 1), 1);
	}
	users_expect_end(users_run(ATTACKER + 1, start_regions, 8), 0, "another user");
	close(held[1]);
	users_expect_end(pid[0], 0, "the first profile");
	users_expect_end(pid[1], 0, "the second profile");
	users_expect_end(pid[2], EAGAIN, "the third profile");
	neighbour_stop(&d);
}
