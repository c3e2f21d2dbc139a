/* state.h - what a thread is doing */
#ifndef PROFIL_TEST_STATE_H
#define PROFIL_TEST_STATE_H

#include <sys/types.h>

/*
 * Waits until thread @tid of @pid is in @state, as /proc/PID/stat has it: 'S' is in a system call
 * that waits, 'Z' a zombie. Says whether it came to that; not if it has gone.
 */
int await_state(pid_t pid, pid_t tid, char state);

#endif
