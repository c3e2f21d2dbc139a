/* target.h - one address space that is being counted, with its regions and counters */
#ifndef PROFIL_TARGET_H
#define PROFIL_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/layout.h"
#include "core/proto.h"

struct session;

/* total = binned + unmatched + lost + raw, whenever no tick is under way. */
struct ticks {
	uint64_t total;
	uint64_t binned;
	uint64_t unmatched;
	uint64_t lost;
	uint64_t raw;
};

struct target {
	struct target *next; /* of the same session */
	struct session *session;

	/* The sampler's: where it put them. */
	bool held;
	bool quiet; /* it has stopped, and every tick has reached its counters */
	uint32_t index;
	uint32_t region_first;
	uint32_t counter_first;

	pid_t tgid;
	uint64_t period_ns;
	uint32_t flags; /* enum profil_target_flags */
	uint32_t nregions;
	struct profil_region *region;
	uint64_t ncounters; /* of all regions */
	uint64_t nbins;

	/* The daemon's half of the ticks: its own, or in a map for the next daemon. */
	struct profil_ledger *ledger;
	struct profil_ledger own;

	struct ticks replayed; /* the replay sampler's */
};

/*
 * A new target with @n regions as a client asked for them, checked: -EINVAL where they make no
 * sense. Counters are numbered from 0; the sampler moves them to where it has room.
 */
int target_new(struct target **out, struct session *session, pid_t tgid,
	       const struct profil_msg_region *region, uint32_t n);
struct target *target_free(struct target *t);

/*
 * Its first region, as the kernel has it at hand: what that counts is known without a search. No
 * span: the region begins above its own bin 0, and is searched for.
 */
struct profil_xform target_near(const struct target *t);

/* Says whether a tick searches its regions. */
bool target_searched(const struct target *t);

/* The same regions, for the same addresses in another process. */
int target_copy(struct target **out, struct session *session, pid_t tgid, const struct target *t);

/*
 * Checks what an earlier daemon left, as the sampler has read it: -EINVAL where a region would
 * reach beyond the target's own counters.
 */
int target_check(const struct target *t);

/* The bin of @pc, and in *@owner the region whose buffer it is in; or PROFIL_NO_BIN. */
uint32_t target_bin(const struct target *t, uint64_t pc, uint32_t *owner);

#endif
