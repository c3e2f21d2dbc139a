/* user_slots.h - the users that have targets, to which the BPF programs charge children */
#ifndef PROFIL_PROFILD_BPF_USER_SLOTS_H
#define PROFIL_PROFILD_BPF_USER_SLOTS_H

#include <stdint.h>
#include <sys/types.h>

#include "core/shared_maps.h"

/*
 * Adds a target to the slot of @uid, until user_slot_unuse(). Never fails: there are as many slots
 * as targets.
 */
uint32_t user_slot_use(struct profil_tables *tables, uid_t uid, uint64_t children_max);
void user_slot_unuse(struct profil_tables *tables, uint32_t slot);

/*
 * After a restart: user_slots_reset() frees all slots, and user_slot_adopt() takes @slot again for
 * a target of @uid. Returns the slot, another one if @slot is not @uid's.
 */
void user_slots_reset(struct profil_tables *tables, uint64_t children_max);
uint32_t user_slot_adopt(struct profil_tables *tables, uint32_t slot, uid_t uid);

/* The number of children's entries of @uid; (uid_t)-1: of all users. */
uint32_t user_slot_children(const struct profil_tables *tables, uid_t uid);

#endif
