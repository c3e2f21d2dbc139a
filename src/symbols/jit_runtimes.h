/* jit_runtimes.h - running JIT runtimes that write no perf map */
#ifndef PROFIL_SYMBOLS_JIT_RUNTIMES_H
#define PROFIL_SYMBOLS_JIT_RUNTIMES_H

#include <stddef.h>
#include <sys/types.h>

struct jit_runtime {
	const char *name;
	const char *cure; /* how to make it write /tmp/perf-PID.map */
	size_t unnamed; /* processes without that file that the caller has permission to inspect */
	pid_t first;	/* one of them */
};

/* Counts these processes by runtime. Returns a table of *@n runtimes, valid until the next call. */
const struct jit_runtime *jit_runtimes(size_t *n);

#endif
