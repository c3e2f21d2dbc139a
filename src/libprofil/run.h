/* run.h - what this process tells the profilctl that runs it, if one does */
#ifndef PROFIL_LIB_RUN_H
#define PROFIL_LIB_RUN_H

/* Says whether profilctl runs us, and tells it, once, that a program has begun. */
int run_begin(void);

/* Hands over the memory @fd that calls are counted in: the last one of a process is its own. */
void run_graph(int fd);

#endif
