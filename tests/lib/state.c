/* state.c - waits for a state of another process */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "state.h"

void await_pause(void)
{
	const struct timespec pause = { .tv_nsec = 10000000 };

	nanosleep(&pause, NULL);
}

int await_state(pid_t pid, pid_t tid, char state)
{
	char path[64], text[512], now = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	while (now != state) {
		__cleanup(fclosep) FILE *f = fopen(path, "re");

		if (!f || !fgets(text, sizeof(text), f))
			return 0;
		now = strrchr(text, ')')[2];
		sched_yield();
	}
	return 1;
}
