/* debuginfod.h - downloads debug files from the servers in DEBUGINFOD_URLS */
#ifndef PROFIL_SYMBOLS_ELF_DEBUGINFOD_H
#define PROFIL_SYMBOLS_ELF_DEBUGINFOD_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>

#define DEBUGINFOD_TIME_S 60
#define DEBUGINFOD_BYTES_MAX (4l << 30) /* of a file, which a server may say is of any size */

/* Says whether DEBUGINFOD_URLS names a server. */
bool debuginfod_servers(void);

/*
 * Limits the downloads of @dwfl to DEBUGINFOD_TIME_S seconds for all downloads of a profilctl
 * process, and each to DEBUGINFOD_BYTES_MAX, and shows their progress on a terminal. Does nothing
 * if DEBUGINFOD_URLS is empty.
 */
void limit_debuginfod(Dwfl *dwfl);

/*
 * Downloads the debug file with the build id @id of @bytes, or takes it from libdebuginfod's cache.
 * Returns a descriptor or a negative errno.
 */
int debuginfod_fetch(Dwfl *dwfl, const unsigned char *id, int bytes);

/* Erases the line of progress. */
void progress_end_debuginfod(void);

#endif
