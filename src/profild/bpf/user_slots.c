/* user_slots.c - the users that have targets, to which the BPF programs charge children */
#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "user_slots.h"

/* Half of the process table's entries. */
#define CHILDREN_MAX (PROFIL_BUCKETS * PROFIL_BUCKET_ENTRIES / 2)

static uint32_t at_most(uint64_t n)
{
	return n < CHILDREN_MAX ? (uint32_t)n : CHILDREN_MAX;
}

static bool is_of(const struct profil_user *user, uid_t uid, bool root)
{
	return user->uid == uid && (user->root != 0) == root;
}

static void limit(const struct profil_tables *tables, struct profil_user *user,
		  const struct user_slot *limits)
{
	user->children_max = at_most(limits->children_max);
	user->children_reserve = limits->children_reserve < tables->children_max
					 ? (uint32_t)limits->children_reserve
					 : tables->children_max;
}

/*
 * The user's slot, or the first free one. Slots are taken from the lowest on, and few users have
 * targets: with one user for each of 4096 targets the search takes 4 us.
 */
static struct profil_user *find(struct profil_tables *tables, const struct user_slot *wanted)
{
	struct profil_user *unused = NULL;
	uint32_t left = tables->users;

	for (uint32_t i = 0; i < PROFIL_MAX_TARGETS; i++) {
		struct profil_user *user = &tables->user[i];

		if (!user->targets) {
			unused = unused ? unused : user;
			if (!left)
				break;
			continue;
		}
		if (is_of(user, wanted->uid, wanted->root))
			return user;
		left--;
	}
	return unused;
}

uint32_t user_slot_use(struct profil_tables *tables, const struct user_slot *wanted)
{
	struct profil_user *user = find(tables, wanted);

	assert(user);
	if (!user->targets) {
		*user = (struct profil_user){ .uid = wanted->uid, .root = wanted->root };
		tables->users++;
	}
	user->targets++;
	limit(tables, user, wanted);
	return (uint32_t)(user - tables->user);
}

void user_slot_unuse(struct profil_tables *tables, uint32_t slot)
{
	struct profil_user *user = &tables->user[slot];

	if (user->targets && !--user->targets)
		tables->users--;
}

void user_slots_reset(struct profil_tables *tables, uint64_t children_max)
{
	for (uint32_t i = 0; i < PROFIL_MAX_TARGETS; i++)
		tables->user[i].targets = 0;
	tables->users = 0;
	tables->children_max = at_most(children_max);
}

uint32_t user_slot_adopt(struct profil_tables *tables, uint32_t slot,
			 const struct user_slot *wanted)
{
	struct profil_user *user = &tables->user[slot % PROFIL_MAX_TARGETS];

	if (!is_of(user, wanted->uid, wanted->root))
		return user_slot_use(tables, wanted);
	tables->users += !user->targets;
	user->targets++;
	limit(tables, user, wanted);
	return (uint32_t)(user - tables->user);
}

uint32_t user_slot_children(const struct profil_tables *tables, uid_t uid, bool root)
{
	if (uid == (uid_t)-1)
		return tables->children;
	for (uint32_t i = 0; i < PROFIL_MAX_TARGETS; i++) {
		if (tables->user[i].targets && is_of(&tables->user[i], uid, root))
			return tables->user[i].children;
	}
	return 0;
}
