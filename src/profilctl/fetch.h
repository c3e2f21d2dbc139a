/* fetch.h - debug files from the servers that DEBUGINFOD_URLS names */
#ifndef PROFIL_FETCH_H
#define PROFIL_FETCH_H

#include <stddef.h>

/*
 * Asks for the debug file of build id @id. All that one run asks for may take FETCH_TIME_S seconds
 * together; a terminal shows how far it is, and Ctrl-C gives up. Returns a descriptor, or -ENOENT
 * where no server is named, has it, or is quick enough.
 */
int fetch_debugfile(const unsigned char *id, size_t len);

#define FETCH_TIME_S 60

#endif
