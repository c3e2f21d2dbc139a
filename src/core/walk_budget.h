/* walk_budget.h - the time that walks of stacks may take: arithmetic of bpf/unwind.bpf.h */
#ifndef PROFIL_CORE_WALK_BUDGET_H
#define PROFIL_CORE_WALK_BUDGET_H

#include <linux/types.h>
#include <stdbool.h>

/*
 * The walks for users that may not observe others take at most 1/WALK_SHARE of a CPU's time: their
 * programs decide how long a walk takes, interrupts are off meanwhile, and at a context switch it
 * is in no thread's CPU time. A single user has half of that. Users that together exceed it pay
 * more for each walk, until their sum is within it: so they cannot use up the share of one whose
 * walks take little time. Beyond that, a sample is counted at its place, and in stack_lost instead
 * of at a stack. Each CPU has a budget for each user, and one for all of them.
 */
#define WALK_SHARE 10
#define WALK_USERS_SHARE 20
#define WALK_BURST_NS 10000000
#define WALK_PRICE_MOST 16

struct walk_budget {
	__u64 paid_until_ns;
	__s64 ns;
};

/* Adds what @b's share of the time has brought. Returns false if nothing is left. */
static inline __attribute__((always_inline)) bool walk_pay(struct walk_budget *b, __u64 now_ns,
							   __u64 share)
{
	__u64 paid_ns = (now_ns - b->paid_until_ns) / share;
	__s64 ns = b->ns + (__s64)(paid_ns < 2 * WALK_PRICE_MOST * (__u64)WALK_BURST_NS
					   ? paid_ns
					   : 2 * WALK_PRICE_MOST * (__u64)WALK_BURST_NS);

	b->paid_until_ns = now_ns;
	b->ns = ns < WALK_BURST_NS ? ns : WALK_BURST_NS;
	return b->ns > 0;
}

/* Takes the time of a walk, @ns, from the budgets of its user and of all. */
static inline __attribute__((always_inline)) void walk_charge(struct walk_budget *everyones,
							      struct walk_budget *users, __u64 ns)
{
	__u64 over = everyones->ns < 0 ? (__u64)-everyones->ns : 0;
	__u64 price = 1 + over / WALK_BURST_NS;

	if (price > WALK_PRICE_MOST)
		price = WALK_PRICE_MOST;
	users->ns -= (__s64)(ns * price);
	if (over < (WALK_PRICE_MOST - 1) * (__u64)WALK_BURST_NS)
		everyones->ns -= (__s64)ns;
}

#endif
