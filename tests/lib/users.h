/* users.h - processes of ordinary users */
#ifndef PROFIL_TEST_USERS_H
#define PROFIL_TEST_USERS_H

#include <sys/types.h>

/* Becomes user @uid, and ends with its parent. Returns 0, or -1 with errno. Only for root. */
int users_become(uid_t uid);

/*
 * Runs @fn(@arg) in a child, as user @uid if the test is root. The exit status is what that
 * returns, or 99 when the child could not become the user.
 */
pid_t users_run(uid_t uid, int (*fn)(unsigned int), unsigned int arg);

/* Waits for the end of @pid; expects exit status @expected. @what names the process in messages. */
void users_expect_end(pid_t pid, int expected, const char *what);

/* Waits for the end of @pid: its exit status. */
int users_wait(pid_t pid);

#endif
