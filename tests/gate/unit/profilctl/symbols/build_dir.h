/* build_dir.h - a directory for a test, with a C file that it compiles */
#ifndef PROFIL_TEST_BUILD_DIR_H
#define PROFIL_TEST_BUILD_DIR_H

/* Its path, while there is one. */
extern char build_dir[];

/* Makes it with @source as a.c, and looks for debug files beside theirs and in its folder @store.
 */
void build_dir_open(const char *source, const char *store);
void build_dir_close(void);

/* Runs a shell command in it, which must succeed. Skips the test where it needs gcc and there is
 * none. */
void build_dir_run(const char *command);

#endif
