/* spool_dir.h - the folder of a spool: writing, and rotation by age and size */
#ifndef PROFIL_PROFILCTL_SPOOL_SPOOL_DIR_H
#define PROFIL_PROFILCTL_SPOOL_SPOOL_DIR_H

#include <time.h>
#include <linux/types.h>

#include "formats/format.h"
#include "profile/profile.h"
#include "profile/spool_files.h"

/* A file that could not be written yet. */
struct spool_file {
	time_t started;
	long seconds;
	char suffix[32];
	char *text;
	size_t bytes;
};

/* A day of one-minute profiles of a machine that is not busy, or two hours of a busy one. */
#define SPOOL_WAITING_BYTES (16u << 20)

struct spool_dir {
	const char *path; /* not owned */
	int fd;
	time_t max_age_s;
	__u64 max_bytes;
	struct spool_file *waiting; /* to be written, the oldest first */
	size_t nwaiting;
	__u64 dropped; /* profiles that had no room in SPOOL_WAITING_BYTES */
};

/*
 * Opens the spool @path for writing, creates the last component if it is missing, and removes the
 * incomplete files of a killed writer. Returns 0 or a negative errno, -EBUSY if another process
 * writes to it.
 */
int spool_dir_open(struct spool_dir *d, const char *path);
void spool_dir_close(struct spool_dir *d);

/*
 * Adds @p, whose interval began at @p->started and took @p->duration_ns, to what is to be written;
 * with @format also a file in that format. Returns 0 or a negative errno.
 */
int spool_dir_add(struct spool_dir *d, const struct profile *p, const struct format *format);

/*
 * Writes what is to be written. Returns 0 or a negative errno: the rest waits for the next call, as
 * far as SPOOL_WAITING_BYTES go; the oldest profiles beyond that are dropped.
 */
int spool_dir_flush(struct spool_dir *d);

/* Removes the oldest files until the limits of age and size hold. Returns 0 or a negative errno. */
int spool_dir_rotate(struct spool_dir *d, time_t now);

#endif
