/* run_notify.h - messages to the profilctl that runs this process, if one does */
#ifndef PROFIL_LIBPROFIL_RUN_NOTIFY_H
#define PROFIL_LIBPROFIL_RUN_NOTIFY_H

/* Returns 1 if profilctl runs this process. The first call sends that a program has started. */
int run_begin(void);

/* Sends, once, that this process has started a profile. */
void run_profile(void);

/* Sends @fd, the memory in which calls are counted; it replaces an earlier one. */
void run_graph(int fd);

#endif
