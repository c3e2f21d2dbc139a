/* table_slots.h - slots of the array of tables, changed by threads that wait for RCU */
#ifndef PROFIL_PROFILD_BPF_TABLE_SLOTS_H
#define PROFIL_PROFILD_BPF_TABLE_SLOTS_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

struct table_slots;
struct user;

/*
 * @outer, @unwind: the arrays of maps of tables and of unwind rules. Removes tables of an earlier
 * daemon; with @keeps_first not that of the first slot, which is put there again.
 */
int table_slots_open(struct table_slots **out, int outer, int unwind, bool keeps_first,
		     sd_event *event);
struct table_slots *table_slots_close(struct table_slots *s);

/*
 * Takes a slot for an attachment and charges it to @user; -EAGAIN if none is free, -EDQUOT if one
 * of this user's will be, in some milliseconds.
 */
int table_slots_take(struct table_slots *s, struct user *user, uint32_t *slot);

/*
 * Likewise, without a charge, for the machine's next table. A slot whose former table is still
 * being removed will do: all of the machine's tables have one layout, so a sample in flight may use
 * the layout of one for the next.
 */
uint32_t table_slots_take_for_machine(struct table_slots *s);

/* Has the maps @table and @unwind (-1: none) put into @slot, where the BPF programs see them. */
int table_slots_put(struct table_slots *s, uint32_t slot, int table, int unwind);

/*
 * Returns 0 when they are there, in 0.1 ms or later on a busy machine; until then -EINPROGRESS.
 * Another negative errno: the kernel has refused them.
 */
int table_slots_ready(const struct table_slots *s, uint32_t slot, bool unwind);

/* Removes the maps. The slot is free, and its charge given back, after an RCU grace period. */
void table_slots_give(struct table_slots *s, uint32_t slot);

#endif
