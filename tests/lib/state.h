/* state.h - waits for a state of a thread */
#ifndef PROFIL_TEST_STATE_H
#define PROFIL_TEST_STATE_H

#include <sys/types.h>

/*
 * Waits until thread @tid of @pid is in @state of /proc/PID/stat: 'S' sleeps in a system call, 'Z'
 * is a zombie. Returns 0 when the thread has ended instead.
 */
int await_state(pid_t pid, pid_t tid, char state);

#endif
