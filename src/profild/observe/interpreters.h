/* interpreters.h - descriptors of interpreters that root has installed, for the machine's profile
 */
#ifndef PROFIL_PROFILD_OBSERVE_INTERPRETERS_H
#define PROFIL_PROFILD_OBSERVE_INTERPRETERS_H

#include <stdbool.h>

#include "core/observe_maps.h"

/*
 * A descriptor decides which memory of a process is copied as a name. A client's are used for
 * processes that the client may read; the machine's profile, which has no client and shows its
 * names to all of group profil, takes those of the file PROFIL_INTERPRETERS_FILE, if it is root's
 * alone to write. 'profilctl interpreters' writes it. The daemon copies it as it is: format and
 * bounds are checked, no ELF file is read.
 *
 * Says whether there is such a file.
 */
bool interpreters_installed(void);

/*
 * Copies the descriptors into the map of unwind rules @unwind of the table @table, which has
 * @header, and gives them to the images that the table has already. Returns 0, -ENOENT without
 * descriptors, or another negative errno after a message.
 */
int interpreters_put(int unwind, int table, const struct profil_table *header);

#endif
