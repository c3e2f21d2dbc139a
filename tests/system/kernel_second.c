/* kernel_second.c - a second daemon on the socket of one that answers: it goes, and harms nobody */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/profil.h>
#include <unistd.h>

#include "kernel_ticks.h"
#include "profil.h"

static struct daemon d;

static void start(void)
{
	static const char *args[] = { "--rate", TICKS_RATE, NULL };

	daemon_start(&d, NULL, args);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(kernel_second, .init = start, .fini = stop);

Test(kernel_second, is_refused_and_leaves_the_profiles_of_the_first_alone)
{
	const char *args[] = { "--socket", d.socket, NULL };
	static unsigned short buf[LOOPS];
	struct profil_msg_profile p;
	struct loop_time t = { 0 };
	char log[1024];

	cr_assert_eq(profil(buf, sizeof(buf), loop_at(0), TICKS_SCALE_16), 0, "profil: %s",
		     strerror(errno));
	loop_timed(&t, 3, 50000000);
	cr_expect_eq(daemon_refuses(args, log, sizeof(log)), 1);
	cr_expect(strstr(log, d.socket), "it says: %s", log);
	loop_timed(&t, 3, TICKS_SPELL_NS);
	cr_assert_eq(profil_sync(), 0, "profil_sync: %s", strerror(errno));
	cr_expect(ticks_list(&d, getpid(), &p), "the profile has gone");
	ticks_expect(buf[3], &t, TICKS_PERIOD_NS, 10, 15, "the profile");

	/* Nor has it taken away what outlives the first one. */
	daemon_kill(&d);
	daemon_restart(&d);
	cr_expect(ticks_list(&d, getpid(), &p), "the profile does not outlive the daemon");
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
}
