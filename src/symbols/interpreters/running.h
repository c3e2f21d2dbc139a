/* running.h - the interpreters in running processes, for doctor */
#ifndef PROFIL_SYMBOLS_INTERPRETERS_RUNNING_H
#define PROFIL_SYMBOLS_INTERPRETERS_RUNNING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A file with an interpreter that processes have mapped. */
struct running_interpreter {
	char *path;
	const char *language; /* NULL: its version is not known, or its symbols are gone */
	pid_t pid;	      /* of one of them */
	size_t processes;
	unsigned long long dev, ino;
};

/*
 * Finds the interpreters of all processes whose maps this user may read. Returns 0 or -ENOMEM;
 * running_free() in any case.
 */
int running_interpreters(struct running_interpreter **out, size_t *n);

/* Says whether the functions of an interpreter in process @pid are shown. */
bool running_is_shown(pid_t pid);

void running_free(struct running_interpreter *r, size_t n);

#endif
