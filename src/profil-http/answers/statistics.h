/* statistics.h - counters of profil-http itself, for its metrics */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_STATISTICS_H
#define PROFIL_PROFIL_HTTP_ANSWERS_STATISTICS_H

#include <linux/types.h>

/* Updated atomically by any thread. */
struct statistics {
	__u64 connections; /* open now */
	__u64 refused;	   /* connections beyond a user's limit */
	__u64 response[6]; /* by the first digit of their status */
};

extern struct statistics statistics;

static inline void statistics_count(__u64 *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

static inline void statistics_connections(__u64 n)
{
	__atomic_store_n(&statistics.connections, n, __ATOMIC_RELAXED);
}

static inline void statistics_response(unsigned int status)
{
	statistics_count(&statistics.response[status / 100 % 6]);
}

#endif
