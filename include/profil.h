/* profil.h - functions that no historical dialect has */
#ifndef PROFIL_H
#define PROFIL_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Brings the buffers of the running profile up to date: every sample counted before the call is in
 * them when it returns. Returns 0, also when no profile is on; -1 with errno ENOSYS where no
 * profild answers.
 */
int profil_sync(void);

#ifdef __cplusplus
}
#endif

#endif
