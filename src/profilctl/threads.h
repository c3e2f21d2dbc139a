/* threads.h - the ticks of each thread */
#ifndef PROFIL_THREADS_H
#define PROFIL_THREADS_H

#include "profile.h"

/* A binned tick of thread @tid of process @pid, which has its name still. Returns 0 or -ENOMEM. */
int threads_tick(struct profile *p, pid_t pid, pid_t tid);

/* Process @pid has begun another program: its thread has another name. Likewise. */
int threads_exec(struct profile *p, pid_t pid);

#endif
