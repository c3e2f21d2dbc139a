/* kernel_second.c - a second daemon on the same socket refuses to start, and the first is unharmed
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/profil.h>
#include <unistd.h>

#include "tests/lib/kernel_ticks.h"
#include "profil.h"

DAEMON_SUITE(kernel_second, "--rate", TICKS_RATE);

Test(kernel_second, is_refused_and_leaves_the_profiles_of_the_first_alone)
{
	const char *args[] = { "--socket", d.socket, NULL };
	static unsigned short buf[LOOPS];
	struct profil_msg_profile p;
	char log[1024];
	unsigned short before;

	cr_assert_eq(profil(buf, sizeof(buf), loop_at(0), TICKS_SCALE_16), 0, "profil: %s",
		     strerror(errno));
	TICKS_SPIN(3, TICKS_SYNCED(buf[3]));
	cr_expect_eq(daemon_refuses(args, log, sizeof(log)), 1);
	cr_expect(strstr(log, d.socket), "the log does not name the socket: %s", log);
	before = buf[3];
	TICKS_SPIN(3, profil_sync() == 0 && buf[3] > before);
	ticks_conserved(&d, buf[3]);

	/* The second daemon has not removed the first one's pins either. */
	daemon_kill(&d);
	daemon_restart(&d);
	cr_expect(ticks_list(&d, getpid(), &p), "the profile does not outlive the daemon");
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
}
