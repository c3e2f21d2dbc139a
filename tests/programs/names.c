/* names.c - processes with names of their own: names N MS runs N, each of them for so many ms of
 * CPU time */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AT_ONCE 4

static void spin(long ms)
{
	struct timespec t;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[1]) : 0, running = 0;

	for (long i = 0; i < n; i++, running++) {
		char name[16];
		pid_t pid;

		if (running == AT_ONCE && wait(NULL) > 0)
			running--;
		snprintf(name, sizeof(name), "name-%ld", i);
		pid = fork();
		if (pid < 0)
			return 1;
		if (!pid) {
			prctl(PR_SET_NAME, name);
			spin(atol(argv[2]));
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
