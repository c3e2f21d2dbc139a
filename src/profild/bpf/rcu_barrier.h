/* rcu_barrier.h - waits in the background for an RCU grace period */
#ifndef PROFIL_PROFILD_BPF_RCU_BARRIER_H
#define PROFIL_PROFILD_BPF_RCU_BARRIER_H

#include <stdint.h>
#include <systemd/sd-event.h>

struct rcu_barrier;

/*
 * After a grace period, every BPF program that was running at rcu_barrier_ask() has ended. @passed
 * is then called from the event loop.
 */
int rcu_barrier_open(struct rcu_barrier **out, sd_event *event, void (*passed)(void *arg),
		     void *arg);
struct rcu_barrier *rcu_barrier_close(struct rcu_barrier *b);

/* Elements to be deleted from maps of maps; the kernel waits for a grace period at each. */
#define RCU_BARRIER_DROPS 8
struct rcu_barrier_drops {
	uint32_t n;
	int map[RCU_BARRIER_DROPS];
	uint32_t key[RCU_BARRIER_DROPS];
};

/* Requests a grace period that begins now, and deletes @drops. Only one may be under way. */
void rcu_barrier_ask(struct rcu_barrier *b, const struct rcu_barrier_drops *drops);

#endif
