/* kernel_list.h - what the daemon says of one process's profile */
#ifndef PROFIL_TEST_KERNEL_LIST_H
#define PROFIL_TEST_KERNEL_LIST_H

#include <sys/types.h>

#include "daemon.h"

/* Asks @d for its LIST. Returns whether the process @pid has a profile of its own, in @out. */
int kernel_list(const struct daemon *d, pid_t pid, struct profil_msg_profile *out);

#endif
