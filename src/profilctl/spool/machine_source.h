/* machine_source.h - the machine profile's samples, across restarts of the daemon and new tables */
#ifndef PROFIL_PROFILCTL_SPOOL_MACHINE_SOURCE_H
#define PROFIL_PROFILCTL_SPOOL_MACHINE_SOURCE_H

#include "table/daemon_client.h"
#include "table/table_reader.h"
#include "profilctl/options/options.h"
#include "profile/merge.h"
#include "symbols/symbolize_cache.h"

/*
 * A daemon can take over its predecessor's table, so tables are identified by their start in
 * CLOCK_BOOTTIME. From the first table, only samples since machine_source_open() are taken; from
 * later tables, all.
 */
struct machine_source {
	const struct options *options;
	struct client *client; /* NULL: not connected */
	struct table_reader reader;
	struct table_seen seen;
	struct call_tree stacks; /* at the last reading; empty without */
	struct profile *names;	 /* objects and groups of the table; NULL: no table */
	struct symbolize_cache cache;
	__u64 opened_ns; /* CLOCK_BOOTTIME */
	__u64 table_ns;	 /* start of the table */
	bool reported;	 /* the message that there is no table was printed */
};

/*
 * Connects, and turns the machine profile on if it is off. Prints a message on failure and returns
 * an enum ctl_status.
 */
int machine_source_open(struct machine_source *s, const struct options *o);
void machine_source_close(struct machine_source *s);

/*
 * Readable once the daemon has ended; the caller then calls machine_source_lost(). -1: not
 * connected.
 */
int machine_source_fd(const struct machine_source *s);
void machine_source_lost(struct machine_source *s);

/*
 * To be called about once a second: finds new images and groups, reconnects to a restarted daemon,
 * and switches to a new table after adding the old one's last samples to @rest. Prints one message
 * while there is no table. Returns 0, also without a table, 1 if the table has another rate than
 * the samples in @rest, or a negative errno.
 */
int machine_source_update(struct machine_source *s, struct merge *rest);

/*
 * The same, and adds the samples since the last call to @into, symbolized. Samples of another rate
 * than those in @into are left to the next call.
 */
int machine_source_take(struct machine_source *s, struct merge *into);

#endif
