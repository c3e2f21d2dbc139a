/* processes.h - the kernel's table of who is a target, from the daemon's side */
#ifndef PROFIL_PROCESSES_H
#define PROFIL_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/layout.h"

/*
 * The kernel changes the table at the same time: at every fork, exec and exit. So each change here
 * replaces one entry by another in a single step, or fails.
 */
struct processes {
	struct profil_bucket *bucket; /* mapped: PROFIL_BUCKETS of them */
	struct profil_target *target; /* mapped: PROFIL_MAX_TARGETS of them */
	struct profil_news *news;     /* mapped */
	uint32_t seed;
};

/* Has the mirror look at target @index. */
void processes_mark_news(struct processes *p, uint32_t index);

/*
 * Finds the first target from *@index up to before @end that has news. Returns false where there is
 * none.
 */
bool processes_next_news(const struct processes *p, uint32_t *index, uint32_t end);

/* Takes the mark of target @index away, before what it has is looked at. */
void processes_take_news(struct processes *p, uint32_t index);

/* Asks the kernel for an event with the next mark. Those that are there by now have none. */
void processes_await_news(struct processes *p);

/*
 * Makes @tgid, which runs @image (PROFIL_ENTRY_IMAGES), a process of target @index. -EAGAIN where
 * its bucket is full.
 */
int processes_insert(struct processes *p, uint32_t tgid, uint32_t image, uint32_t index);

/*
 * Moves @tgid from the target of which @ours(arg, index) says that it may be, to @index. -ESRCH
 * where there is no such entry, -ESTALE where its life @life is over (PROFIL_ENTRY_LIFE).
 */
int processes_move(struct processes *p, uint32_t tgid, uint32_t life, uint32_t index,
		   bool (*ours)(const void *arg, uint32_t index), const void *arg);

/*
 * Looks at the entries of @tgid, one a call, from *@at = 0 on. Returns 0 after the last; entries
 * are never 0.
 */
uint64_t processes_next(const struct processes *p, uint32_t tgid, int *at);

/* Says whether @tgid counts in target @index itself, which a newborn does not. */
bool processes_counts(const struct processes *p, uint32_t tgid, uint32_t index);

/* Another than @tgid that does, sharing the memory; 0 where there is none. */
uint32_t processes_other(const struct processes *p, uint32_t tgid, uint32_t index);

/* Who leads to the memory of target @index: its owner @tgid, or who shares it; 0: nobody. */
uint32_t processes_leader(const struct processes *p, uint32_t tgid, uint32_t index);

/* Takes @tgid out of target @index. */
void processes_remove(struct processes *p, uint32_t tgid, uint32_t index);

/* Takes out of target @index who counts in it, but not the newborn, whose memory is another. */
void processes_orphan(struct processes *p, uint32_t index);

/* Takes every process out of target @index; @tgid is one that may well be there. */
void processes_clear(struct processes *p, uint32_t tgid, uint32_t index);

#endif
