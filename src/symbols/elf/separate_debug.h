/* separate_debug.h - finds the separate debug file of an ELF file on this machine */
#ifndef PROFIL_SYMBOLS_ELF_SEPARATE_DEBUG_H
#define PROFIL_SYMBOLS_ELF_SEPARATE_DEBUG_H

/* The search path for separate debug files, in libdwfl's syntax. Tests set their own. */
extern const char *debug_file_path;

/*
 * Opens the separate debug file of the ELF file @fd, whose build id in hex is @build_id ("": none):
 * by build id, else by .gnu_debuglink, in the folders of debug_file_path. Its build id must be the
 * same; without one, the checksum in .gnu_debuglink must match. Unlike debug_file_open() it never
 * downloads, because the profiled program already runs. Returns a descriptor or -ENOENT.
 */
int separate_debug_open(int fd, const char *build_id);

/* The path of the file @fd, which the caller frees; NULL: unknown. */
char *separate_debug_path(int fd);

/*
 * Opens the supplementary file that dwz(1) has made, with the same rules: by its @build_id, else at
 * @name, which can be relative to @folder. Returns a descriptor or -ENOENT.
 */
int separate_debug_open_alternate(const char *folder, const char *name, const char *build_id);

#endif
