/* run_cause.h - why a program does not load a library that LD_PRELOAD names */
#ifndef PROFIL_PROFILCTL_VERBS_RUN_CAUSE_H
#define PROFIL_PROFILCTL_VERBS_RUN_CAUSE_H

#include <stddef.h>

/*
 * Looks at the file that @command executes, in PATH if it has no slash; of a script, at its
 * interpreter. Writes the cause, as "it is linked statically", to @out. Returns @out.
 */
const char *run_cause(char *out, size_t bytes, const char *command);

#endif
