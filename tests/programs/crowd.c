/* crowd.c - threads that start, sync and stop profiles at the same time, and fork meanwhile
 *
 * Runs over replay of a sample at 0x400000. Exit status 0: every call succeeded.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/profil.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profil.h"

#define THREADS 4
#define TURNS 100
#define BASE 0x400000ul

static unsigned short buf[THREADS][16];
static int refused;

static void expect(const char *call, int result)
{
	if (result == 0)
		return;
	fprintf(stderr, "%s: %s\n", call, strerror(errno));
	__atomic_store_n(&refused, 1, __ATOMIC_RELAXED);
}

static void fork_once(void)
{
	pid_t pid = fork();
	int status = 1;

	if (pid == 0)
		_exit(profil_sync() != 0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		status = 1;
	expect("a fork child's profil_sync", status ? -1 : 0);
}

static void *turns(void *arg)
{
	unsigned short *own = arg;

	for (unsigned int i = 0; i < TURNS; i++) {
		expect("profil", profil(own, sizeof(buf[0]), BASE, 65536));
		expect("profil_sync", profil_sync());
		if (i % 10 == 0)
			fork_once();
		expect("sprofil", sprofil(NULL, 0, NULL, 0));
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];

	for (unsigned int i = 0; i < THREADS; i++) {
		if (pthread_create(&thread[i], NULL, turns, buf[i]))
			return fprintf(stderr, "cannot start a thread\n"), 1;
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return refused;
}
