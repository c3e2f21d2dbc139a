/* work.h - the protocol between daemon and worker process */
#ifndef PROFIL_PROFILD_WORKER_WORK_H
#define PROFIL_PROFILD_WORKER_WORK_H

#include <stdint.h>

#include "core/proto.h"
#include "core/shared_maps.h"

/*
 * A request and its answer are one packet of a socket pair each; bulk data is in the area, memory
 * that both map. The daemon names a memory by a slot number, which it chooses. Requests are done in
 * order. Only one request with an answer is in flight at a time.
 */
enum work_kind {
	/*
	 * Opens the present memory of @pid as @slot. Answer: err, image. With WORK_PRIVILEGED: also
	 * whether @pid is privileged and of user @uid, even on an error.
	 */
	WORK_OPEN = 1,
	/*
	 * Opens the memory of @pid as @slot, which it replaces, if it has fingerprint @image and
	 * @cookie at @cookie_addr. Answer: err; on an error @slot is unchanged.
	 */
	WORK_ADOPT,
	/*
	 * Checks @slot; with WORK_COPY, makes it a copy of @from first. Answer: err; -EPERM if it
	 * does not have @cookie at @cookie_addr, -ESRCH if it is no longer the memory of @pid,
	 * -EFAULT if one of the area's @n ranges is not writable.
	 */
	WORK_VERIFY,
	/* Adds the counts of the area to the buffers of @n profiles. Answer: in the area. */
	WORK_ADD,
	/*
	 * Finds the process of the two descriptors @id, a pidfd and its /proc/PID/maps, and checks
	 * that user @uid may observe it: see process_proof(). Answer: err, pid.
	 */
	WORK_AUTHORIZE,
	/*
	 * Closes the descriptors @id. The daemon itself never has a descriptor of a client, except
	 * its socket. Answer: err.
	 */
	WORK_DROP,
	/* Closes @slot. No answer. */
	WORK_CLOSE,
	/* Keeps the packet's descriptors. No answer. */
	WORK_HOLD,
	/* Exits, with all descriptors. */
	WORK_EXIT,
};

#define WORK_MEMBER 1u /* of group profil */
#define WORK_PRIVILEGED 2u
/*
 * The packet carries the socket of a client: the worker receives the next message from it, and
 * keeps that message's descriptors as @id.
 */
#define WORK_TAKE 4u
#define WORK_COPY 8u

struct work {
	uint32_t kind;
	uint32_t slot;
	int32_t pid;
	uint32_t flags;
	uint32_t n;
	uint32_t uid;
	uint32_t from; /* a slot */
	uint32_t none;
	uint64_t id;
	uint64_t image;
	uint64_t cookie_addr;
	uint8_t cookie[PROFIL_COOKIE_BYTES];
};

struct work_answer {
	int32_t err;
	int32_t pid;
	uint32_t privileged;
	uint32_t none;
	uint64_t image;
};

/* --- the area --------------------------------------------------------------------------------- */

#define WORK_AREA_BYTES (1u << 18)

struct work_range {
	uint64_t addr;
	uint64_t bytes;
};

/*
 * WORK_ADD: a sequence of profiles. Each is followed by its spans, and each span by its counts
 * (uint32_t) or pcs (uint64_t), padded to 8 bytes. The worker fills in the outcomes.
 *
 * A profile's err: 0; -ECANCELED if the cookie has changed, -ESRCH if the memory no longer exists;
 * after both nothing was written. A span's err: 0, -EFAULT, or -ECANCELED if an earlier span has
 * ended the profile.
 */
struct work_profile {
	uint64_t cookie_addr;
	uint8_t cookie[PROFIL_COOKIE_BYTES];
	uint32_t slot;
	uint32_t nspans;
	uint32_t width;
	uint32_t cap;
	uint32_t flags; /* enum profil_start_flags */
	int32_t err;
};

struct work_span {
	uint64_t addr;
	uint64_t sum;	    /* of the counts; the number of pcs */
	uint64_t saturated; /* samples dropped because a counter was at the cap */
	uint32_t owner;	    /* the region, for the daemon */
	uint32_t n;
	uint32_t bin; /* likewise */
	int32_t err;
};

union work_area {
	struct work_range range[WORK_AREA_BYTES / sizeof(struct work_range)];
	uint8_t bytes[WORK_AREA_BYTES];
};
_Static_assert(PROFIL_TARGET_REGIONS * sizeof(struct work_range) <= WORK_AREA_BYTES,
	       "the buffers of one START have room");

/* The bytes of a span's counts or pcs. */
static inline uint32_t work_span_bytes(const struct work_profile *p, uint32_t n)
{
	uint32_t each = p->flags & PROFIL_START_PCS ? 8 : 4;

	return (n * each + 7) & ~7u;
}

/* The worker process: serves requests from @sock until the daemon closes its end. */
void worker_main(int sock, union work_area *area) __attribute__((noreturn));

/*
 * In a process just forked: moves @sock to the lowest number after standard error, which it
 * returns, closes all other descriptors of the daemon, drops the rights that it does not need, sets
 * the process's name, and has the kernel kill it with its parent.
 */
int leave_the_daemon(int sock, const char *name);

#endif
