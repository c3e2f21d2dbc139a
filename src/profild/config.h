/* config.h - what profild was told, on its command line and in a file */
#ifndef PROFIL_CONFIG_H
#define PROFIL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#define NSEC_PER_SEC 1000000000ULL

/* The range of every rate; the fastest clock that the kernel has ticks each 10 µs. */
#define RATE_MIN_HZ 1
#define RATE_MAX_HZ 50000

/* How much one user may have at a time, root excepted, and how much all together. */
struct quota {
	uint32_t profiles;
	uint32_t regions;
	uint64_t bins;
	uint32_t rate_hz;
	uint32_t connections;
	uint32_t requests; /* a second */
};

/* What ticks: the timer that a busy CPU takes anyway, perf events, or whichever suits a rate. */
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
	enum clock_choice clock;
	bool restrict_fast;
	bool fd_store;	/* the service manager keeps what outlives us */
	bool ephemeral; /* nothing does */
	struct quota user;
	struct quota all;
	int argc; /* where it comes from, to be read again */
	char **argv;
};

/* The period of @hz, to the nearest nanosecond. */
static inline uint64_t period_of(uint64_t hz)
{
	return (NSEC_PER_SEC + hz / 2) / hz;
}

/*
 * Reads the command line into @c, whose strings it goes on to own. Returns 0, 1 where all was said
 * and the program should end well (--help), or -EINVAL after a line on stderr.
 */
int config_parse(struct config *c, int argc, char **argv);

/*
 * Reads all of it again. Only the limits for a user and restrict_fast change; on -EINVAL or another
 * error, after a line on stderr, nothing does.
 */
int config_reload(struct config *c);

#endif
