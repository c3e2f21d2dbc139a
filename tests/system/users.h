/* users.h - processes of users who are nobody in particular */
#ifndef PROFIL_TEST_USERS_H
#define PROFIL_TEST_USERS_H

#include <sys/types.h>

/* Becomes user @uid until its parent ends; 0, or -1 with errno. Only for root. */
int users_become(uid_t uid);

/*
 * Runs @fn(@arg) in a child, as user @uid where we may choose; its exit status is what that
 * returns, or 99 where it did not become that user.
 */
pid_t users_run(uid_t uid, int (*fn)(unsigned int), unsigned int arg);

/* Waits for the end of @pid, which should be with exit status @expected. */
void users_expect_end(pid_t pid, int expected, const char *who);

#endif
