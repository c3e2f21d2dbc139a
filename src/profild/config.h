/* config.h - profild's options, from the command line and a file */
#ifndef PROFIL_PROFILD_CONFIG_H
#define PROFIL_PROFILD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "profild/quota/quota.h"

#define NSEC_PER_SEC 1000000000ULL

/* The range of every rate. */
#define RATE_MIN_HZ 1
#define RATE_MAX_HZ 50000

/* The clock: timer tick, perf events, or by the rate (AUTO). */
enum clock_choice {
	CLOCK_AUTO,
	CLOCK_TICK,
	CLOCK_CPU,
	CLOCK_CYCLES,
};

struct config {
	const char *socket_path;
	const char *replay_path; /* NULL: the kernel */
	const char *file;	 /* --config: SIGHUP reads it again; NULL: none */
	uint64_t period_ns;
	uint64_t fast_period_ns;
	uint64_t mirror_interval_ns;
	uint64_t client_timeout_ns; /* of a worker's operation on a client's memory */
	enum clock_choice clock;
	bool machine;		    /* profile the machine from the start, ... */
	uint64_t machine_period_ns; /* ... with this period; 0: period_ns */
	bool stacks;		    /* ... and call stacks */
	bool restrict_fast;
	bool fd_store;	/* the service manager keeps the persistent store */
	bool ephemeral; /* no persistent store */
	struct quota_config quota;
	int argc; /* of main(), for config_reload() */
	char **argv;
};

/* The period of @hz, to the nearest nanosecond. */
static inline uint64_t period_of(uint64_t hz)
{
	return (NSEC_PER_SEC + hz / 2) / hz;
}

/*
 * Reads the command line into @c, which refers to its strings. Returns 0, 1 if the program should
 * exit with 0 (--help), or -EINVAL after a message on stderr.
 */
int config_parse(struct config *c, int argc, char **argv);

/*
 * Reads all options again. Changes only the limits for users and restrict_fast. On an error, after
 * a message on stderr, nothing is changed.
 */
int config_reload(struct config *c);

#endif
