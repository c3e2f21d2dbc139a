/* seccomp_state.h - detects seccomp filters added since the profile was started */
#ifndef PROFIL_LIBPROFIL_SECCOMP_STATE_H
#define PROFIL_LIBPROFIL_SECCOMP_STATE_H

/*
 * Both are called with the library's lock held. seccomp_note() records, once for the process, the
 * filters of the calling thread, under which socket() has just worked. seccomp_changed() returns 1
 * if the thread has other filters now, or if that is unknown: then socket() may kill the process.
 */
void seccomp_note(void);
int seccomp_changed(void);

#endif
