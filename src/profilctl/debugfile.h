/* debugfile.h - where the symbols went that were split off an ELF file */
#ifndef PROFIL_DEBUGFILE_H
#define PROFIL_DEBUGFILE_H

#include <libelf.h>

/* Below which the debug files of a system lie: /usr/lib/debug. A test has its own. */
extern const char *debugfile_dir;

/*
 * Opens the debug file of @elf, which lies at @path: by build id, else by its .gnu_debuglink,
 * else from a server. One
 * whose build id or checksum is another's is not taken. Returns a descriptor or -ENOENT.
 */
int debugfile_open(Elf *elf, const char *path);

#endif
