/* java_bases.h - where processes have libjvm.so: the cache of bpf/hotspot.bpf.h */
#ifndef PROFIL_CORE_JAVA_BASES_H
#define PROFIL_CORE_JAVA_BASES_H

#include <linux/types.h>

/*
 * A process's set is chosen by its hash. In a full set a new process takes the place of one of the
 * account that has most places there, and of its own if it is one of those: however many processes
 * one user has, in each set another user's are left alone while they are fewer.
 *
 * CPUs write at the same time. A mark that is not the process's and the base's together shows a
 * place of which two of them wrote parts: it counts as unknown.
 */
#define JAVA_SETS 512
#define JAVA_WAYS 8

struct java_set {
	struct {
		__u64 mark; /* hash of the process, XOR base */
		__u64 base; /* of libjvm.so; 0: free */
		__u32 account;
		__u32 zero;
	} way[JAVA_WAYS];
};

#define JAVA_INLINE static inline __attribute__((always_inline))

/*
 * 1 if @x is 0, else 0. The code of this file has no branches, because the verifier follows each
 * sequence of them by itself; the asm keeps the compiler from making one.
 */
JAVA_INLINE __u64 java_is_zero(__u64 x)
{
	x = (x >> 32 | x) & 0xffffffff;
	__asm__ volatile("" : "+r"(x));
	return (x - 1) >> 63;
}

/* 1 if way @i is the process's, else 0. */
JAVA_INLINE __u64 java_is_at(const struct java_set *s, int i, __u64 process)
{
	return java_is_zero(s->way[i].mark ^ s->way[i].base ^ process) &
	       (java_is_zero(s->way[i].base) ^ 1);
}

/* The base of the process with the hash @process; 0: unknown. */
JAVA_INLINE __u64 java_base_find(const struct java_set *s, __u64 process)
{
	__u64 found = 0;

	for (int i = 0; i < JAVA_WAYS; i++) {
		__u64 base = s->way[i].base;

		found |= base & -java_is_zero(s->way[i].mark ^ base ^ process);
	}
	return found;
}

/* The process's own way, else a free one, else one of the account with the most. */
JAVA_INLINE __u32 java_way(const struct java_set *s, __u32 account, __u64 process)
{
	__u64 most = 0;

	for (__u32 i = 0; i < JAVA_WAYS; i++) {
		__u64 n = 0, is_less;

		for (__u32 j = 0; j < JAVA_WAYS; j++)
			n += java_is_zero(s->way[j].account ^ s->way[i].account);
		n = 2 * n + java_is_zero(s->way[i].account ^ account);
		n |= java_is_zero(s->way[i].base) << 8 | java_is_at(s, (int)i, process) << 9;
		n = n << 4 | i;
		is_less = (n - most) >> 63;
		__asm__ volatile("" : "+r"(is_less));
		most ^= (most ^ n) & (is_less - 1);
	}
	return most & (JAVA_WAYS - 1);
}

JAVA_INLINE void java_base_keep(struct java_set *s, __u32 account, __u64 process, __u64 base)
{
	__u32 way = java_way(s, account, process) & (JAVA_WAYS - 1);

	s->way[way].account = account;
	s->way[way].mark = process ^ base;
	s->way[way].base = base;
}

#endif
