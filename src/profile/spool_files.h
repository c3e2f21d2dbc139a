/* spool_files.h - the files of a spool: their names, and those of a span of time */
#ifndef PROFIL_PROFILE_SPOOL_FILES_H
#define PROFIL_PROFILE_SPOOL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <linux/types.h>

#define SPOOL_DIR_DEFAULT "/var/lib/profil-spool"

/*
 * A file is named machine-20261122T031200Z-60s.json.gz: the start of its interval in UTC and its
 * length, so that names sort by time and a span of time selects files by name. If the name exists
 * (the clock was set back), .2 follows the seconds, and so on. While it is written, a file has the
 * name machine-....json.gz.PID.N.
 */
#define SPOOL_SUFFIX ".json.gz"

struct spool_entry {
	char name[80];
	time_t start;
	time_t seconds;
	__u64 bytes;
	bool is_profile; /* false: another format, for collectors */
};

/*
 * Lists the spool @path, or with @leftovers its incomplete files, sorted by time; the caller frees
 * *@out. Returns 0 or a negative errno.
 */
int spool_files_list(struct spool_entry **out, size_t *n, const char *path, bool leftovers);

/* True if @name is one of the @n files of spool_files_list(). */
bool spool_files_has(const struct spool_entry *all, size_t n, const char *name);

#define SPOOL_NO_END ((time_t)1 << 40) /* after all times of the calendar */

/*
 * Moves the profiles whose intervals have their middle from @since to before @until to the front;
 * without any, the one whose interval contains the middle of this span. Returns their number.
 */
size_t spool_files_choose(struct spool_entry *all, size_t n, time_t since, time_t until);

#endif
