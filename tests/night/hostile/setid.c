/* setid.c - looks for samples of a set-user-ID program that a vfork child execs
 *
 * usage: setid PROGRAM SECONDS
 *
 * Prints how many children exec'd PROGRAM, how many samples the profile of this process stored, and
 * how many of them are in no mapping of this process. A sample within execve() has no place.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/shared_maps.h"
#include "tests/lib/hostile.h"

#define SAMPLES 65536
#define MAPPINGS 512

long pcsample_solaris(uintptr_t samples[], long nsamples);

static uintptr_t sample[SAMPLES];
static struct mapping {
	uintptr_t start;
	uintptr_t end;
} mapping[MAPPINGS];

static unsigned int read_mappings(void)
{
	__cleanup(fclosep) FILE *f = fopen("/proc/self/maps", "re");
	__cleanup(freep) char *line = NULL;
	unsigned int n = 0;
	size_t room = 0;

	while (f && n < MAPPINGS && getline(&line, &room, f) >= 0)
		n += sscanf(line, "%lx-%lx", &mapping[n].start, &mapping[n].end) == 2;
	return n;
}

static bool is_own(uintptr_t pc, unsigned int mappings)
{
	for (unsigned int i = 0; i < mappings; i++) {
		if (pc >= mapping[i].start && pc < mapping[i].end)
			return true;
	}
	return false;
}

static void run(char *program)
{
	char *argv[] = { program, NULL };
	pid_t pid = vfork();

	if (pid == 0) {
		execve(program, argv, NULL);
		_exit(127);
	}
	if (pid < 0)
		attack_fail("vfork");
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	uint64_t until = now_ns() + (uint64_t)((argc > 2 ? atof(argv[2]) : 1) * 1e9);
	unsigned int mappings, execs = 0, outside = 0;
	long n;

	if (argc < 3)
		return 2;
	if (pcsample_solaris(sample, SAMPLES) < 0)
		attack_fail("pcsample");
	for (; now_ns() < until; execs++)
		run(argv[1]);
	n = pcsample_solaris(sample, 0);
	if (n < 0)
		attack_fail("pcsample");
	mappings = read_mappings();
	for (long i = 0; i < n; i++)
		outside += sample[i] > PROFIL_PC_NOWHERE && !is_own(sample[i], mappings);
	attack_result("execs", execs);
	attack_result("samples", n);
	attack_result("outside", outside);
	return 0;
}
