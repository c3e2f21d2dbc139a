/* jit_runtime.h - runtimes that compile code at run time, and how each is made to describe it */
#ifndef PROFIL_PROFILE_JIT_RUNTIME_H
#define PROFIL_PROFILE_JIT_RUNTIME_H

#include <stddef.h>

#define JIT_WORDS_MAX 3
#define JIT_LIBRARIES_MAX 2

struct jit_runtime {
	const char *name;
	const char *names_cure;	 /* how to make it write /tmp/perf-PID.map */
	const char *stacks_cure; /* how to keep frame pointers; NULL: its code has them */
	/* Arguments or environment variables that make it write that file, or a jitdump. */
	const char *words[JIT_WORDS_MAX];
	/* Beginnings of the names of libraries that contain it, for programs that embed it. */
	const char *libraries[JIT_LIBRARIES_MAX];
};

extern const struct jit_runtime jit_runtimes[];
extern const size_t jit_nruntimes;

/* NULL: unknown. */
const struct jit_runtime *jit_runtime_find(const char *name);

#endif
