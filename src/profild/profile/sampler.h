/* sampler.h - the interface of samplers: the kernel (bpf/backend.c), a file (replay.c) */
#ifndef PROFIL_PROFILD_PROFILE_SAMPLER_H
#define PROFIL_PROFILD_PROFILE_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "target.h"

struct config;
struct place_source;
struct sampler;

/* What a sampler calls, from the event loop. */
struct sampler_sink {
	/* A sample of a process of @t arrived as a pc. */
	void (*pc)(struct target *t, const struct profil_event *event);
	/* @t is a target of an earlier daemon. */
	int (*recover)(void *arg, struct target *t, const struct profil_owner *owner);
	void *arg;
};

/* Counts taken from @n counters from @bin on, of the buffer of region @owner. Some may be 0. */
struct counts {
	uint32_t *count; /* the caller's array, ... */
	uint32_t room;	 /* ... its size: a multiple of a block, at most PROFIL_SPAN */
	uint32_t owner;
	uint32_t bin;
	uint32_t n;
	uint64_t sum;
};

struct sampler_ops {
	struct sampler *(*close)(struct sampler *s);

	/*
	 * Reserves what start() needs. Returns 0, an error, or -EINPROGRESS: @done is called later,
	 * from the event loop. unreserve() gives back a reservation that start() has not used;
	 * after it @done is not called. Counters need a reservation.
	 */
	int (*reserve)(struct sampler *s, struct target *t, void (*done)(void *arg, int err),
		       void *arg);
	void (*unreserve)(struct sampler *s, struct target *t);
	/*
	 * Begins to count @t's process. With @old, moves the process from that target if it is
	 * still of @generation, else -ESTALE. stop() and release() are due after a failure, too.
	 */
	int (*start)(struct sampler *s, struct target *t, const struct target *old,
		     uint32_t generation);
	/* Removes all processes from @t. Does not wait for samples in flight. */
	void (*stop)(struct sampler *s, struct target *t);
	/*
	 * After stop(): true if the outcome of each sample is known. With @last, samples without an
	 * outcome are counted as lost.
	 */
	bool (*settled)(struct sampler *s, struct target *t, bool last);
	/*
	 * The target of @tgid; NULL: none. *@unbound: @tgid has forked from a process of that
	 * target and has no counters yet.
	 */
	struct target *(*find)(struct sampler *s, pid_t tgid, bool *unbound, uint32_t *generation);
	/* A process other than @tgid that counts in @t and is not unbound; 0: none. */
	pid_t (*other)(struct sampler *s, const struct target *t, pid_t tgid);
	/* Removes @tgid from @t. Returns true if other processes are left. */
	bool (*leave)(struct sampler *s, struct target *t, pid_t tgid);
	/* Removes all processes from @t except unbound ones. Returns true if some are left. */
	bool (*orphan)(struct sampler *s, struct target *t);
	/* Gives back what start() took, after stop(). */
	void (*release)(struct sampler *s, struct target *t);

	/*
	 * The first dirty target from number *@at on, with new counts or ended; NULL: none. Clears
	 * its flag and sets *@at behind it.
	 */
	struct target *(*next)(struct sampler *s, uint32_t *at);
	/*
	 * True if there is no dirty target, and an event will announce the next one. False if there
	 * is one, or if no event would announce it.
	 */
	bool (*rests)(struct sampler *s);
	/*
	 * Takes the next counts of @t for a buffer. Returns 1; 0: there are no more; -EAGAIN: there
	 * may be more when those in flight have been written. The caller adds what was taken to
	 * t->in_flight.
	 */
	int (*take)(struct sampler *s, struct target *t, struct counts *out);
	/* Undoes a take(). */
	void (*put_back)(struct sampler *s, struct target *t, uint32_t owner, uint32_t bin,
			 const uint32_t *count, uint32_t n);
	/* Counts @n samples in @t, as if the sampler had counted them. */
	void (*count)(struct sampler *s, struct target *t, uint32_t owner, uint32_t bin,
		      uint32_t n);
	/* Turns off region @owner and its other pieces. */
	void (*region_off)(struct sampler *s, struct target *t, uint32_t owner);
	/* The sampler's counts of @t: total, unmatched, lost and unfollowed. */
	void (*samples)(struct sampler *s, const struct target *t, struct samples *out);
	/* True if the last process of @t has ended. */
	bool (*ended)(struct sampler *s, const struct target *t);
	unsigned int (*chunk_count)(struct sampler *s);
	/* Children charged by the kernel to @uid, as root or not; -1: to all users. */
	unsigned int (*children)(struct sampler *s, uid_t uid, bool root);

	/* Continues the targets of an earlier daemon. Called once, after all set-up. */
	void (*recover)(struct sampler *s);
	/* True if targets that are not stopped outlive the daemon. */
	bool (*keeps)(struct sampler *s);
};

struct sampler {
	const struct sampler_ops *ops;
	const struct sampler_sink *sink;
	struct place_source *places; /* NULL: it does not count places */
	uint32_t image_lookup;	     /* enum profil_image_lookup; 0: it does not count places */
	bool counts_at_start;	     /* a profile has counts when it starts: a pass is due */
	int table_ids;		     /* fd of the link of an iterator over tables; <= 0: none */
};

int sampler_bpf_open(struct sampler **out, const struct config *config, sd_event *event,
		     const struct sampler_sink *sink);
int sampler_replay_open(struct sampler **out, const struct config *config,
			const struct sampler_sink *sink);

#endif
