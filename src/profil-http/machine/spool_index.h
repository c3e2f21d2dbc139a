/* spool_index.h - the profiles of a spool in memory, read as they are asked for */
#ifndef PROFIL_PROFIL_HTTP_MACHINE_SPOOL_INDEX_H
#define PROFIL_PROFIL_HTTP_MACHINE_SPOOL_INDEX_H

#include "analysis/interval_sums.h"
#include "profile/spool_files.h"

struct spool_span {
	time_t since, until;
};

#define SPOOL_SPANS 2 /* of a comparison */

/* Zeroed but for @path, it is empty. */
struct spool_index {
	const char *path;
	struct interval_sums sums;
	struct spool_entry *entry; /* profiles of the spool, sorted by time */
	size_t n;
	int error;	  /* of listing them */
	__u64 changed_ns; /* when files were last added or removed, as listed; 0: unknown */
	struct spool_span wanted[SPOOL_SPANS]; /* read first */
};

/* Lists the spool, unless it is unchanged. */
void spool_index_list(struct spool_index *x);

/*
 * Reads the newest file of the wanted spans that is not in memory, or else of the spool. Returns
 * false if there is none, or no room.
 */
bool spool_index_read_one(struct spool_index *x);

/*
 * The number of profiles in @span that are still to be read; adds all that can be to *@all, and to
 * *@too_old those for which there is no room.
 */
size_t spool_index_unread(const struct spool_index *x, const struct spool_span *span, size_t *all,
			  size_t *too_old);

void spool_index_fini(struct spool_index *x);

#endif
