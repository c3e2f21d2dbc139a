/* user_slots.h - the users that have targets, to which the BPF programs charge children */
#ifndef PROFIL_PROFILD_BPF_USER_SLOTS_H
#define PROFIL_PROFILD_BPF_USER_SLOTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/shared_maps.h"

/* A user as quota.h has it, and its limits of children. */
struct user_slot {
	uid_t uid;
	bool root;
	uint64_t children_max;
	uint64_t children_reserve; /* the part of the machine's limit that is reserved for others */
};

/*
 * Adds a target to the slot of @user, until user_slot_unuse(). Never fails: there are as many slots
 * as targets.
 */
uint32_t user_slot_use(struct profil_tables *tables, const struct user_slot *user);
void user_slot_unuse(struct profil_tables *tables, uint32_t slot);

/*
 * After a restart: user_slots_reset() frees all slots, and user_slot_adopt() takes @slot again for
 * a target of @user. Returns the slot, another one if @slot is not that user's.
 */
void user_slots_reset(struct profil_tables *tables, uint64_t children_max);
uint32_t user_slot_adopt(struct profil_tables *tables, uint32_t slot, const struct user_slot *user);

/* The number of children's entries of @uid, as root or not; (uid_t)-1: of all users. */
uint32_t user_slot_children(const struct profil_tables *tables, uid_t uid, bool root);

#endif
