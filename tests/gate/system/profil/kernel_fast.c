/* kernel_fast.c - a profile that is faster than the timer tick waits until the program of perf events
 * is loaded */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/profil.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/lib/kernel_ticks.h"
#include "profil.h"

DAEMON_SUITE(kernel_fast, "--rate", "100");

/* The daemon's descriptors of perf event programs. */
static int perf_programs(void)
{
	char path[300], line[128];
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)d.pid);
	dir = opendir(path);
	cr_assert(dir, "%s: %s", path, strerror(errno));
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		__cleanup(fclosep) FILE *f = NULL;

		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)d.pid, e->d_name);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			n += !strncmp(line, "prog_type:\t7\n", 13);
	}
	closedir(dir);
	return n;
}

static int start_fast(void)
{
	static unsigned short buf[LOOPS];
	struct prof region = { buf, sizeof(buf), loop_at(0), TICKS_SCALE_16 };

	return sprofil(&region, 1, NULL, PROF_USHORT | PROF_FAST);
}

/* The status: 0 when the profile has begun. */
static pid_t start_fast_in_child(void)
{
	pid_t pid = fork();

	cr_assert(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0)
		_exit(start_fast() < 0 ? errno : 0);
	return pid;
}

Test(kernel_fast, profiles_begin_when_their_program_is_loaded)
{
	pid_t child[3];
	int status;

	cr_assert_eq(perf_programs(), 0, "it is loaded before it is needed");
	for (int i = 0; i < 3; i++)
		child[i] = start_fast_in_child();
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(waitpid(child[i], &status, 0), child[i]);
		cr_expect_eq(status, 0, "wait status 0x%x", status);
	}
	cr_expect_eq(perf_programs(), 1);
}

Test(kernel_fast, profile_that_ends_while_it_waits_leaves_nothing)
{
	struct profil_msg_profile p;
	pid_t child[8];

	for (int i = 0; i < 8; i++)
		child[i] = start_fast_in_child();
	for (int i = 0; i < 8; i++)
		kill(child[i], SIGKILL);
	cr_assert_eq(start_fast(), 0, "sprofil: %s", strerror(errno));
	for (int i = 0; i < 8; i++) {
		cr_assert_eq(waitpid(child[i], NULL, 0), child[i]);
		while (ticks_list(&d, child[i], &p))
			;
	}
	cr_expect(ticks_list(&d, getpid(), &p), "the profile that waited with them has ended");
}
