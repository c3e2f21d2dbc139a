/* spool.h - stores a machine profile for each interval in a folder, and reads them by time */
#ifndef PROFIL_PROFILCTL_SPOOL_SPOOL_H
#define PROFIL_PROFILCTL_SPOOL_SPOOL_H

#include "profilctl/options/options.h"
#include "profilctl/input/file_sum.h"
#include "profile/profile.h"
#include "profilctl/util/time_words.h"

#define SPOOL_INTERVAL_NS 60000000000u
#define SPOOL_MAX_AGE_S (7 * 86400)
#define SPOOL_MAX_BYTES (512ull << 20)

/*
 * Stores the machine profile of each interval in the spool of @o, until a signal or the time limit
 * of @o. Waits for an ended daemon to restart. Prints a message on failure and returns an enum
 * ctl_status.
 */
int spool_keep(const struct options *o);

/*
 * Adds up the profiles in the spool of @o whose intervals have their middle in @span; without any,
 * reads the one whose interval contains the middle of @span. Prints a message on failure and
 * returns an enum ctl_status: CTL_PARTIAL, with a profile, if some files cannot be read.
 */
int spool_read(struct profile **out, const struct options *o, const struct time_span *span);

/* Adds the names of these files to @l. Prints a message on failure; returns an enum ctl_status. */
int spool_files(struct file_list *l, const struct options *o, const struct time_span *span);

#endif
