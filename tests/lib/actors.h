/* actors.h - processes that act when they are told, and the events that they cause */
#ifndef PROFIL_TEST_ACTORS_H
#define PROFIL_TEST_ACTORS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/proto.h"
#include "daemon.h"

struct actor {
	pid_t pid;
	int go;	  /* a byte makes it act */
	int done; /* what it writes when it has acted */
};

/* Forks a child that calls @act(@arg) with its ends of both, and ends with the test. */
struct actor actor_fork(void (*act)(int go, int done, const void *arg), const void *arg);

/* Lets it act; does not wait. */
void actor_tell(const struct actor *a);

/* Ends it. Returns how often it has left a CPU in its life. */
uint64_t actor_end(const struct actor *a);

/* --- actors that cause a known number of events ----------------------------------------------- */

/* To fault in n pages, to sleep n times, or to use n ms of CPU time. */
enum deed { FAULT, SLEEP, SPIN };

/* Returns after the actor's first byte: the events of its start are over. */
struct actor actor(enum deed deed, unsigned int n);

/* Lets it act, and waits until it has acted. */
void actor_once_more(const struct actor *a);

/* A request for samples of an event, of processes. */
struct profil_msg_observe ask_event(__u32 type, __u64 config, __u64 period);

/*
 * The samples of @ask in a process that acts once, and how often it has left a CPU in its life, to
 * @switches if not NULL.
 */
uint64_t actor_samples(const struct daemon *d, const struct profil_msg_observe *ask, enum deed deed,
		       unsigned int n, uint64_t *switches);

/*
 * The samples of a process that spins for 200 ms, by page faults and by TICKS_PERIOD_NS, while one
 * that is not observed has 5000 page faults.
 */
void actor_samples_apart(const struct daemon *d, uint64_t *events, uint64_t *times);

/*
 * For a user: samples of 300,000 page faults of a process, of which the kernel takes few and weighs
 * them. Returns 0, or the number of the check that failed: they stand for @least events, and all
 * kernel addresses are one place, since they are hidden.
 */
int actor_weighted(const struct daemon *d, uint64_t least);

#endif
