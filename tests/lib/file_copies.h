/* file_copies.h - copies of this program as files whose code is mapped, executed and observed */
#ifndef PROFIL_TEST_FILE_COPIES_H
#define PROFIL_TEST_FILE_COPIES_H

#include <stdint.h>

#include "observer.h"

/* Copies this program to @path, with a build id that begins with the byte @mark. */
void copy_self(const char *path, uint8_t mark);

/* Maps the loops' page from the copy @fd. Returns NULL when that fails. */
void *copy_map(int fd);

/* Executes the loop that is mapped at @at for @ns of CPU time. */
void copy_work(const void *at, uint64_t ns);

/* A file is identified by @mark, the first byte of its build id. */
struct copy_expected {
	const char *name;
	uint8_t mark;
	int deleted;
};

/* Expects more than @few samples in the one image of the file @e. Returns its number. */
uint32_t copy_expect(const struct observer *o, const struct copy_expected *e, uint64_t few);

/*
 * Opens @o and observes a process for @ns of CPU time, or with 0 until the copy and the loader have
 * a sample. Its threads map and unmap data, code and libraries. Expects the images of both, of the
 * copy with more than @few samples, and with its build id, which can be missing only with 0.
 * Returns the number of all samples.
 */
uint64_t copies_storm(struct observer *o, const struct daemon *d, uint64_t ns, uint64_t few);

/*
 * Observes a process that maps two copies at one address, each @turns times in turn, or with 0
 * until both have a sample and a build id, and executes them for equal CPU times. Expects more than
 * @few samples in each, and stores their numbers. A test on a kernel that cannot tell them apart is
 * skipped.
 */
void copies_in_turn(const struct daemon *d, unsigned int turns, uint64_t few, uint64_t samples[2]);

#endif
