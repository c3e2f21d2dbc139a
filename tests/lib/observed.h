/* observed.h - processes to be observed, and the offsets and build ids of their files */
#ifndef PROFIL_TEST_OBSERVED_H
#define PROFIL_TEST_OBSERVED_H

#include <stdint.h>
#include <sys/types.h>

#include "core/observe_maps.h"

/* A child that waits for child_start(), calls @work(@arg), and exits. */
struct child {
	pid_t pid;
	int go;
};

struct child child_fork(void (*work)(const char *arg), const char *arg);

void child_start(struct child *c);

/* Waits for the child's end; it must exit with 0. */
void child_wait(struct child *c);

/* child_start(), then child_wait(). */
void child_run(struct child *c);

/* The offset of this program's @address in its file. */
uint64_t observed_offset(uintptr_t address);

/* The build id of file @path; returns its length, 0 if it has none. */
unsigned int build_id_of(const char *path, uint8_t id[64]);
void expect_build_id(const struct profil_image *image, const char *path);

#endif
