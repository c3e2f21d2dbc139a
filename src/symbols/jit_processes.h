/* jit_processes.h - running processes of JIT runtimes that do not describe their code */
#ifndef PROFIL_SYMBOLS_JIT_PROCESSES_H
#define PROFIL_SYMBOLS_JIT_PROCESSES_H

#include <stddef.h>
#include <sys/types.h>

#include "profile/jit_runtime.h"

/* Processes of one runtime without a perf map or a jitdump that the caller has permission to
 * inspect. */
struct jit_processes {
	const struct jit_runtime *runtime;
	size_t unnamed;
	pid_t first; /* one of them */
};

/*
 * Counts these processes. Returns a table with an element for each of the runtimes, valid until the
 * next call.
 */
const struct jit_processes *jit_processes(void);

/* The runtime that process @pid executes, or contains as a library; NULL: none that is known. */
const struct jit_runtime *jit_runtime_of(pid_t pid);

#endif
