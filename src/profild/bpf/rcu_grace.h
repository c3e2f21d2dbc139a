/* rcu_grace.h - waits for an RCU grace period */
#ifndef PROFIL_PROFILD_BPF_RCU_GRACE_H
#define PROFIL_PROFILD_BPF_RCU_GRACE_H

/*
 * The kernel waits for a grace period whenever a map of maps is changed, so the wait is an update
 * of a private map of maps. membarrier(2) waits as well, but fails on a machine with nohz_full
 * CPUs.
 */
struct rcu_grace {
	int inner;
	int outer;
};

int rcu_grace_open(struct rcu_grace *g);
void rcu_grace_close(struct rcu_grace *g);

/* After it, every BPF program that was running before has ended. For threads. */
void rcu_grace_wait(const struct rcu_grace *g);

#endif
