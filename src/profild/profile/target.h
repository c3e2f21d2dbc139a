/* target.h - one profiled address space, with its regions and counters */
#ifndef PROFIL_PROFILD_PROFILE_TARGET_H
#define PROFIL_PROFILD_PROFILE_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/shared_maps.h"
#include "core/proto.h"
#include "profild/quota/quota.h"

struct clock_wait;
struct reservation;
struct own_profile;

/* Counts of samples: total = binned + unmatched + lost, unless a sample is in flight. */
struct samples {
	uint64_t total;
	uint64_t binned;
	uint64_t unmatched;
	uint64_t lost;
	uint64_t unfollowed; /* child processes without room, not samples */
};

/* What a target uses of the kernel's tables, until the grace period after its end. */
struct target_charges {
	struct charge slot;
	struct charge regions;
	struct charge counters;
};

void target_charges_move(struct target_charges *to, struct target_charges *from);
void target_charges_give(struct target_charges *c);

struct target {
	struct own_profile *profile; /* NULL: an attachment's */

	/* The sampler's. */
	struct clock_wait *clock_wait;	 /* before the reservation */
	struct reservation *reservation; /* before it starts */
	bool placed;			 /* it has an index, regions and counters */
	bool settled;			 /* after stop(): each sample's outcome is in the ledger */
	bool drained;			 /* settled, and no sample was given up as lost */
	uint32_t index;			 /* in the kernel's tables */
	uint32_t user;			 /* slot in tables.user */
	uint32_t region_first;
	uint32_t counter_first;

	pid_t tgid;
	uint64_t period_ns;
	uint32_t flags; /* enum profil_target_flags */
	uint32_t nregions;
	struct profil_region *region;
	uint64_t ncounters; /* of all regions */
	uint64_t nbins;

	/* In a batch: taken from the maps, not in the ledger yet. */
	uint64_t in_flight;
	uint64_t pcs_in_flight;
	/* Where take() continues; see sampler.h. */
	struct {
		bool begun;
		uint32_t region;
		uint64_t at;
	} cursor;

	/* The daemon's counts of samples: @counts, or in a map for the next daemon. */
	struct profil_ledger *ledger;
	struct profil_ledger counts;

	struct samples replayed; /* of the replay sampler, after release() */
	struct target_charges charges;
};

/*
 * A new target with the @n regions of a client's request. -EINVAL if they are inconsistent. Its
 * counters are numbered from 0; the sampler adds counter_first when it has allocated them.
 */
int target_new(struct target **out, struct own_profile *profile, pid_t tgid,
	       const struct profil_msg_region *region, uint32_t n);
struct target *target_free(struct target *t);

/* Charges what @t uses to @user; @adopt: without a limit. */
int target_charge(struct target *t, struct user *user, bool adopt);

/*
 * A new target with the same regions, for process @tgid. It is charged to @user first: a user at a
 * limit must not make the daemon copy up to 459 KB of regions.
 */
int target_copy(struct target **out, struct own_profile *profile, pid_t tgid,
		const struct target *t, struct user *user);

/*
 * Checks a target of an earlier daemon, as read from the maps: -EINVAL if a region would reach
 * beyond the target's own counters.
 */
int target_check(const struct target *t);

/* The bin of @pc, or PROFIL_NO_BIN; sets *@owner to the region whose buffer has it. */
uint32_t target_bin(const struct target *t, uint64_t pc, uint32_t *owner);

#endif
