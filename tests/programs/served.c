/* served.c - starts one profile of each kind and checks its counts: a client for daemons under
 * faults
 *
 * usage: served exact|some
 *
 * "exact": the daemon replays three ticks at 0x400000 and one at 0x400002. "some": any ticks of the
 * kernel. Exit status: 0 every count is right; 3 a call failed with an errno, which is printed; 1 a
 * call succeeded with a wrong result.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/profil.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "profil.h"

#define BASE 0x400000ul
#define WORK_NS 60000000
#define REGIONS 1500 /* more than a message holds */

static unsigned short buf[32768];
static unsigned int wide[32];
static struct prof prof[REGIONS];
static int refused, lied;

/* True if @result is a success; a failure must have set errno. */
static int granted(const char *call, int result)
{
	if (result == 0)
		return 1;
	printf("%s: %s\n", call, strerror(errno));
	refused = 1;
	lied |= result != -1 || !errno;
	return 0;
}

static void work(void)
{
	struct timespec used;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	while (used.tv_sec == 0 && used.tv_nsec < WORK_NS);
}

static void lie(const char *what)
{
	printf("%s: the counts are not right\n", what);
	lied = 1;
}

/* A call that succeeds must also have its effect. */
static void use_profil(int exact)
{
	unsigned long sum = 0;

	if (!granted("profil", profil(buf, sizeof(buf), exact ? BASE : 0, exact ? 65536 : 2)))
		return;
	if (!exact)
		work();
	if (granted("profil_sync", profil_sync()) && exact && (buf[0] != 3 || buf[1] != 1))
		lie("profil");
	for (unsigned int i = 0; i < sizeof(buf) / sizeof(buf[0]); i++)
		sum += buf[i];
	if (exact && sum != 4)
		lie("profil's other counters");
	granted("profil's stop", sprofil(NULL, 0, NULL, 0));
}

static void use_sprofil(int exact)
{
	struct timeval tick = { -1, -1 };

	prof[0] = (struct prof){ wide, sizeof(wide), BASE, 2 * 65536 };
	for (unsigned int i = 1; i < REGIONS; i++)
		prof[i] = (struct prof){ wide + 16, 4, BASE + 0x1000ul * i, 65536 };
	if (!granted("sprofil", sprofil(prof, REGIONS, &tick, PROF_UINT)))
		return;
	if (tick.tv_sec < 0 || tick.tv_usec < 0)
		lie("sprofil's tick");
	if (granted("profil_sync", profil_sync()) && exact && wide[0] != 4)
		lie("sprofil");
	granted("sprofil's stop", sprofil(NULL, 0, NULL, 0));
}

int main(int argc, char **argv)
{
	int exact = argc > 1 && strcmp(argv[1], "exact") == 0;

	use_profil(exact);
	use_sprofil(exact);
	fflush(stdout);
	return lied ? 1 : refused ? 3 : 0;
}
