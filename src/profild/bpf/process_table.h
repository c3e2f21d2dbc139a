/* process_table.h - the process table from the daemon's side */
#ifndef PROFIL_PROFILD_BPF_PROCESS_TABLE_H
#define PROFIL_PROFILD_BPF_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/shared_maps.h"

/*
 * The kernel changes the table concurrently, at every fork, exec and exit. So each change here is
 * one compare-and-swap, or fails.
 */
struct process_table {
	struct profil_tables *tables; /* mapped */
	struct profil_target *target; /* of them: PROFIL_MAX_TARGETS */
	uint32_t seed;
};

/* Sets the dirty flag of target @index: the next pass drains it. */
void process_table_set_dirty(struct process_table *p, uint32_t index);

/* Sets *@index to the first dirty target of [*@index, @end). Returns false if there is none. */
bool process_table_next_dirty(const struct process_table *p, uint32_t *index, uint32_t end);

/* Clears the flag of target @index, before it is drained. */
void process_table_clear_dirty(struct process_table *p, uint32_t index);

/* A RAW event of target @index has been taken from the ring: frees its user's share of it. */
void process_table_raw_taken(struct process_table *p, uint32_t index);

/* The kernel posts an event when it sets the next flag; none for flags that are set already. */
void process_table_arm_wakeup(struct process_table *p);

/*
 * Inserts @tgid, with @exec_id (PROFIL_ENTRY_EXEC_IDS), into target @index. -EAGAIN: both of its
 * buckets are full.
 */
int process_table_insert(struct process_table *p, uint32_t tgid, uint32_t exec_id, uint32_t index);

/*
 * Moves @tgid from target @from to @index. -ESRCH: there is no such entry; -ESTALE: it is not of
 * @generation, or has just changed.
 */
int process_table_move(struct process_table *p, uint32_t tgid, uint32_t generation, uint32_t from,
		       uint32_t index);

/*
 * Iterates over the entries of @tgid; *@at starts at 0. Returns 0 after the last entry; entries are
 * never 0.
 */
uint64_t process_table_next(const struct process_table *p, uint32_t tgid, int *at);

/* True if @tgid is in target @index and not unbound. */
bool process_table_counts(const struct process_table *p, uint32_t tgid, uint32_t index);

/* Another such process, which shares the memory; 0: none. */
uint32_t process_table_other(const struct process_table *p, uint32_t tgid, uint32_t index);

/* A process with the memory of target @index: @tgid, or one that shares it; 0: none. */
uint32_t process_table_leader(const struct process_table *p, uint32_t tgid, uint32_t index);

/* Removes @tgid from target @index. */
void process_table_remove(struct process_table *p, uint32_t tgid, uint32_t index);

/* Removes all processes from target @index except unbound ones, which have other memory. */
void process_table_orphan(struct process_table *p, uint32_t index);

/* Closes target @index and removes all its processes; @tgid, a likely one, first. */
void process_table_clear(struct process_table *p, uint32_t tgid, uint32_t index);

#endif
