/* state.h - waits for a state of another process */
#ifndef PROFIL_TEST_STATE_H
#define PROFIL_TEST_STATE_H

#include <sys/types.h>

/*
 * Waits until thread @tid of @pid is in @state of /proc/PID/stat: 'S' sleeps in a system call, 'Z'
 * is a zombie. Returns 0 when the thread has ended instead.
 */
int await_state(pid_t pid, pid_t tid, char state);

/*
 * Waits until @condition holds, a state of another process that sends no event of it, and pauses
 * between two looks. It has no limit of its own: tests/run.sh notices that no test ends.
 */
#define AWAIT(condition)               \
	do {                           \
		while (!(condition))   \
			await_pause(); \
	} while (0)
void await_pause(void);

#endif
