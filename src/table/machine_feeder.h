/* machine_feeder.h - feeds the machine's profile the unwind rows of what is sampled */
#ifndef PROFIL_TABLE_MACHINE_FEEDER_H
#define PROFIL_TABLE_MACHINE_FEEDER_H

#include "unwind_feeder.h"

/*
 * The map of unwind rows has a constant size. Files get their rows as they are sampled. When it is
 * full, it is laid out anew from time to time, those files first that have had most frames in the
 * stacks since then. Files for which their users had no time left (file_account.h) get their rows
 * in later minutes, in the same order. Zeroed, it is closed.
 */
struct machine_feeder {
	struct profile *profile; /* the files, for their unwind rows only */
	struct table_reader reader;
	struct unwind_feeder feeder;
	__u64 *frames;	 /* of each image, in all stacks when they were last counted */
	__u64 look_ns;	 /* of now_ns(), when the stacks were last looked at */
	size_t laid_out; /* how often */
};

/*
 * Feeds the map @unwind of the table @table; both stay the caller's. An earlier feeder's rows are
 * replaced. Returns 0 or a negative errno; machine_feeder_close() in any case.
 */
int machine_feeder_open(struct machine_feeder *m, int table, int unwind);

/*
 * To be called some times in a second: adds the rows of new files. Costs a few loads if there are
 * none. Returns 0 or -ENOMEM.
 */
int machine_feeder_update(struct machine_feeder *m);

void machine_feeder_close(struct machine_feeder *m);

#endif
