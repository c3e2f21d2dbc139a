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
int writer_join(struct own_profile *own, struct lane *lane);

/* Queues @own. writer_kick() submits its writer's batch, writers_kick() those of all writers. */
void writer_queue(struct own_profile *own);
void writer_kick(struct own_profile *own);
void writers_kick(struct profild *d);

/* Calls @done when all that @own has counted so far is in the buffer, or lost. -ENOMEM. */
int writer_wait(struct own_profile *own, own_profile_done *done, void *arg);

/* At the daemon's end: counts batches in flight as lost. */
void writers_close(struct profild *d);

/* At the end of @own: calls its waiters. A batch in flight keeps a reference. */
void writer_forget(struct own_profile *own);

#endif
