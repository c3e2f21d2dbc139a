/* buffer_writer.h - drains counts from the maps to the buffers of processes */
#ifndef PROFIL_PROFILD_PROFILE_BUFFER_WRITER_H
#define PROFIL_PROFILD_PROFILE_BUFFER_WRITER_H

#include "profild/daemon.h"
#include "own_profile.h"

/*
 * All profiles of one user share a writer, which passes their counts to the user's worker in
 * batches: as many profiles, and as many counts of each, as fit into the worker's area. One batch
 * is in flight at a time. A profile is queued when it may have counts, and written when the batch
 * with its last counts is done.
 *
 *	maps --take()--> area --WORK_ADD--> buffer
 *	                   |
 *	           target->in_flight, until the batch is done; then ledger->drained, and
 *	           ledger->dropped for counts that did not reach the buffer
 *
 * A daemon that is killed with a batch in flight loses its counts: they are in the kernel's total
 * and in no ledger, so they are `lost` when the profile ends.
 */

/* What has become of a profile's part of a batch. */
enum writer_outcome {
	WRITER_WRITTEN,
	WRITER_PUT_BACK, /* into the maps: the leader has ended, another process has the memory */
	WRITER_OVER,	 /* the memory has ended, the cookie is cleared, or the dialect says so */
	WRITER_WORKER_LOST, /* the counts are lost */
};

/*
 * @on_outcome is called for each profile of a batch, before its passes are served and the next
 * batch is filled. @heir: after WRITER_PUT_BACK the other process, else 0.
 */
int writer_join(struct own_profile *own, struct lane *lane,
		void (*on_outcome)(struct own_profile *own, enum writer_outcome outcome,
				   pid_t heir));

/* Queues @own. writer_kick() submits its writer's batch, writers_kick() those of all writers. */
void writer_queue(struct own_profile *own);
void writer_kick(struct own_profile *own);
void writers_kick(struct profild *d);

/* Brings the buffers up to date: returns the pass that does, see own_profile.h. */
uint64_t writer_pass(struct own_profile *own);

/* At the daemon's end: counts batches in flight as lost. */
void writers_close(struct profild *d);

#endif
