/* sampler.h - where ticks come from: the kernel, or a file of pcs */
#ifndef PROFIL_SAMPLER_H
#define PROFIL_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "target.h"

struct config;
struct sampler;

/* What a sampler tells the rest, from inside the event loop or from sampler_start(). */
struct sampler_sink {
	/*
	 * @n counts, PROFIL_SPAN at most, from @bin on, of the buffer of region @owner; some may be
	 * 0. @journal is where they are noted down, or NULL.
	 */
	void (*counts)(struct target *t, uint32_t owner, uint32_t bin, const uint32_t *count,
		       uint32_t n, struct profil_journal *journal);
	/* Something happened to @tgid, a process of this target: enum profil_event_kind. */
	void (*event)(struct target *t, const struct profil_event *event);
	/* @t is of an earlier daemon; what it had on its way to a buffer, @journal, included. */
	int (*recover)(void *arg, struct target *t, const struct profil_owner *owner);
	void (*redo)(struct target *t, const struct profil_journal *journal);
	/* There were events, and there are no more for now. */
	void (*idle)(void *arg);
	void *arg;
};

struct sampler_ops {
	struct sampler *(*close)(struct sampler *s);

	/*
	 * @t counts from now on in its process. With @old, the process is in a target of @old's
	 * session already, in its life number @life, and is moved; -ESTALE where that is over.
	 * stop() and release() are due after a failure too.
	 */
	int (*start)(struct sampler *s, struct target *t, const struct target *old, uint32_t life);
	/* No process counts in @t any more, and no tick of it is under way. */
	void (*stop)(struct sampler *s, struct target *t);
	/*
	 * The target, of a profile of its own, in which @tgid is; NULL where it is in none. A
	 * newborn has forked from a process of that target, and counts nowhere yet.
	 */
	struct target *(*find)(struct sampler *s, pid_t tgid, bool *newborn);
	/* Another process than @tgid that counts in @t itself; 0 where there is none. */
	pid_t (*other)(struct sampler *s, const struct target *t, pid_t tgid);
	/* @tgid counts in @t no more. Returns whether others are in there still. */
	bool (*leave)(struct sampler *s, struct target *t, pid_t tgid);
	/* Gives back what start() took, after stop(). */
	void (*release)(struct sampler *s, struct target *t);

	/*
	 * The first target from number *@at on, of profiles of their own, with something to drain
	 * or with nobody left in it; NULL after the last. Cheap. Sets *@at to where to go on.
	 */
	struct target *(*next)(struct sampler *s, uint32_t *at);
	/*
	 * Says whether next() has nothing to find until there has been an event. False where there
	 * is something by now, or no event would say so.
	 */
	bool (*rests)(struct sampler *s);
	/* Hands over what was counted since the last time. */
	void (*drain)(struct sampler *s, struct target *t);
	/* Region @owner and its other pieces count no more. */
	void (*region_off)(struct sampler *s, struct target *t, uint32_t owner);
	/* The kernel's half of the ticks: all but binned and what was spilt. */
	void (*ticks)(struct sampler *s, const struct target *t, struct ticks *out);
	/* Says whether the last process of @t has gone. */
	bool (*ended)(struct sampler *s, const struct target *t);
	/* The descriptors of the chunks that hold @t's counters; they stay the sampler's. */
	int (*chunks)(struct sampler *s, const struct target *t, int *fds, unsigned int *nfds);
	unsigned int (*chunk_count)(struct sampler *s);

	/* Goes on with the targets of an earlier daemon; once, when everything else is set up. */
	void (*recover)(struct sampler *s);
	/* Says whether targets that are not stopped go on when the daemon ends. */
	bool (*keeps)(struct sampler *s);
};

struct sampler {
	const struct sampler_ops *ops;
	const struct sampler_sink *sink;
};

int sampler_bpf_open(struct sampler **out, const struct config *config, sd_event *event,
		     const struct sampler_sink *sink);
int sampler_replay_open(struct sampler **out, const struct config *config,
			const struct sampler_sink *sink);

#endif
