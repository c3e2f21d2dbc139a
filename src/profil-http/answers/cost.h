/* cost.h - the CPU time and memory of profild and profil-http */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_COST_H
#define PROFIL_PROFIL_HTTP_ANSWERS_COST_H

#include <linux/types.h>

struct cost {
	__u64 cpu_ns; /* 0: unknown */
	__u64 resident_bytes;
};

/* Of the daemon at @socket (NULL: the default), if this process can see it in /proc. */
void cost_of_daemon(struct cost *c, const char *socket);

/* Of this process. */
void cost_of_self(struct cost *c);

#endif
