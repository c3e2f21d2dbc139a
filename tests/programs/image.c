/* image.c - starts a profile and execs itself at the same addresses: the new image checks its
 * memory */
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loops.h"

extern char **environ;

static unsigned short counts[LOOPS];
static char self[4096];
static char *after_args[] = { self, (char *)"after", NULL };

/* Uses CPU time at the old image's addresses and prints its counters; exits with its input. */
static int after(void)
{
	unsigned int ticks = 0;
	char end;

	loop_for(0, 300000000);
	for (unsigned int i = 0; i < LOOPS; i++)
		ticks += counts[i];
	printf("after: buffer %p loop %#lx ticks %u\n", (void *)counts, (unsigned long)loop_at(0),
	       ticks);
	fflush(stdout);
	return read(STDIN_FILENO, &end, 1) != 0;
}

/*
 * Has a copy of the cookie at the same address as the process that executed it, from its arguments,
 * and space for counters after it. Uses CPU time after the first byte of its input.
 */
static int forge(unsigned long address, const char *cookie, unsigned long ms)
{
	unsigned char *at = mmap((void *)address, 4096, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	unsigned int ticks = 0;
	char go;

	if (at != (void *)address)
		return perror("mmap"), 1;
	for (unsigned int i = 0; i < 16; i++)
		sscanf(cookie + 2 * i, "%2hhx", &at[i]);
	printf("forged\n");
	fflush(stdout);
	if (read(STDIN_FILENO, &go, 1) != 1)
		return 1;
	loop_for(0, ms * 1000000);
	for (unsigned int i = 16; i < 4096; i++)
		ticks += at[i];
	printf("worked as %u: ticks %u\n", (unsigned int)geteuid(), ticks);
	return 0;
}

static void *exec_self(void *arg)
{
	execv(self, after_args);
	_exit(9);
}

static int wait_for(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 9;
	return WIFSIGNALED(status) ? 10 : WEXITSTATUS(status);
}

static int exec_by(const char *how)
{
	pthread_t thread;
	pid_t pid = -1;

	if (!strcmp(how, "exec"))
		exec_self(NULL);
	if (!strcmp(how, "thread") && pthread_create(&thread, NULL, exec_self, NULL) == 0)
		pthread_join(thread, NULL);
	if (!strcmp(how, "fork")) {
		pid = fork();
		if (pid == 0)
			exec_self(NULL);
	} else if (!strcmp(how, "vfork")) {
		pid = vfork();
		if (pid == 0) {
			execv(self, after_args);
			_exit(9);
		}
	} else if (!strcmp(how, "spawn")) {
		posix_spawn(&pid, self, NULL, NULL, after_args, environ);
	}
	return wait_for(pid);
}

int main(int argc, char **argv)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (argc < 2 || n < 0)
		return 2;
	if (!strcmp(argv[1], "after"))
		return after();
	if (!strcmp(argv[1], "forge") && argc == 5)
		return forge(strtoul(argv[2], NULL, 16), argv[3], strtoul(argv[4], NULL, 10));
	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
		personality(ADDR_NO_RANDOMIZE);
		execv(self, argv);
		return 9;
	}

	if (profil(counts, sizeof(counts), loop_at(0), 2 * 65536 / LOOP_BYTES) < 0)
		return perror("profil"), 1;
	while (!counts[0])
		loop_for(0, 1000000);
	printf("before: buffer %p loop %#lx\n", (void *)counts, (unsigned long)loop_at(0));
	fflush(stdout);
	return exec_by(argv[1]);
}
