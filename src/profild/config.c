/* config.c - what profild was told at its start */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "core/layout.h"
#include "core/log.h"
#include "core/proto.h"

static const char usage[] =
	"usage: profild [options]\n"
	"Profiles processes in the kernel and carries the counts into their buffers.\n"
	"\n"
	"  --socket PATH           where clients connect [" PROFIL_SOCKET_DEFAULT "]\n"
	"  --rate HZ               ticks a second of CPU time [100]\n"
	"  --fast-rate HZ          the same with PROF_FAST [1000]\n"
	"  --restrict-fast         PROF_FAST only for root\n"
	"  --mirror-interval MS    how often counts reach the buffers [100]\n"
	"  --replay FILE           ticks from FILE instead of the kernel\n"
	"  --fd-store              profiles outlive a restart in the service manager's store\n"
	"  --ephemeral             profiles end with this daemon, however it ends\n"
	"  --user-profiles N       profiles of one user at a time [256]\n"
	"  --user-regions N        regions of one user at a time [16384]\n"
	"  --user-bins N           bins of one user at a time [16777216]\n"
	"  --user-rate HZ          the fastest rate for a user [10000]\n"
	"  --user-connections N    connections of one user at a time [64]\n"
	"  --help, --version\n";

enum {
	OPT_SOCKET = 256,
	OPT_RATE,
	OPT_FAST_RATE,
	OPT_RESTRICT_FAST,
	OPT_MIRROR_INTERVAL,
	OPT_REPLAY,
	OPT_FD_STORE,
	OPT_EPHEMERAL,
	OPT_USER_PROFILES,
	OPT_USER_REGIONS,
	OPT_USER_BINS,
	OPT_USER_RATE,
	OPT_USER_CONNECTIONS,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option options[] = {
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "fast-rate", required_argument, NULL, OPT_FAST_RATE },
	{ "restrict-fast", no_argument, NULL, OPT_RESTRICT_FAST },
	{ "mirror-interval", required_argument, NULL, OPT_MIRROR_INTERVAL },
	{ "replay", required_argument, NULL, OPT_REPLAY },
	{ "fd-store", no_argument, NULL, OPT_FD_STORE },
	{ "ephemeral", no_argument, NULL, OPT_EPHEMERAL },
	{ "user-profiles", required_argument, NULL, OPT_USER_PROFILES },
	{ "user-regions", required_argument, NULL, OPT_USER_REGIONS },
	{ "user-bins", required_argument, NULL, OPT_USER_BINS },
	{ "user-rate", required_argument, NULL, OPT_USER_RATE },
	{ "user-connections", required_argument, NULL, OPT_USER_CONNECTIONS },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static const struct config defaults = {
	.socket_path = PROFIL_SOCKET_DEFAULT,
	.period_ns = NSEC_PER_SEC / 100,
	.fast_period_ns = NSEC_PER_SEC / 1000,
	.mirror_interval_ns = NSEC_PER_SEC / 10,
	.user = { .profiles = 256,
		  .regions = 16384,
		  .bins = 16777216,
		  .rate_hz = 10000,
		  .connections = 64 },
	.all = { .profiles = PROFIL_MAX_TARGETS,
		 .regions = PROFIL_MAX_REGIONS,
		 .bins = (uint64_t)PROFIL_MAX_CHUNKS * PROFIL_CHUNK_COUNTERS,
		 .rate_hz = RATE_MAX_HZ,
		 .connections = 512 },
};

/* A whole number of @min … @max for option @name. */
static int number(uint64_t *out, const char *name, const char *text, uint64_t min, uint64_t max)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	if (!errno && *text >= '0' && *text <= '9' && !*end && *out >= min && *out <= max)
		return 0;
	log_err("--%s %s: not a number from %llu to %llu", name, text, (unsigned long long)min,
		(unsigned long long)max);
	return -EINVAL;
}

static int set_number(struct config *c, int opt, const char *name, const char *text)
{
	uint64_t n;
	bool rate = opt == OPT_RATE || opt == OPT_FAST_RATE || opt == OPT_USER_RATE;
	int err = number(&n, name, text, RATE_MIN_HZ,
			 rate			       ? RATE_MAX_HZ
			 : opt == OPT_MIRROR_INTERVAL  ? 60000
			 : opt == OPT_USER_BINS	       ? c->all.bins
			 : opt == OPT_USER_REGIONS     ? c->all.regions
			 : opt == OPT_USER_CONNECTIONS ? c->all.connections
						       : c->all.profiles);

	if (err)
		return err;
	switch (opt) {
	case OPT_RATE:
		c->period_ns = period_of(n);
		break;
	case OPT_FAST_RATE:
		c->fast_period_ns = period_of(n);
		break;
	case OPT_MIRROR_INTERVAL:
		c->mirror_interval_ns = n * (NSEC_PER_SEC / 1000);
		break;
	case OPT_USER_PROFILES:
		c->user.profiles = (uint32_t)n;
		break;
	case OPT_USER_REGIONS:
		c->user.regions = (uint32_t)n;
		break;
	case OPT_USER_BINS:
		c->user.bins = n;
		break;
	case OPT_USER_RATE:
		c->user.rate_hz = (uint32_t)n;
		break;
	case OPT_USER_CONNECTIONS:
		c->user.connections = (uint32_t)n;
		break;
	}
	return 0;
}

int config_parse(struct config *c, int argc, char **argv)
{
	int opt, at;

	*c = defaults;
	while ((opt = getopt_long(argc, argv, "", options, &at)) != -1) {
		int err = 0;

		switch (opt) {
		case OPT_SOCKET:
			c->socket_path = optarg;
			break;
		case OPT_REPLAY:
			c->replay_path = optarg;
			break;
		case OPT_RESTRICT_FAST:
			c->restrict_fast = true;
			break;
		case OPT_FD_STORE:
			c->fd_store = true;
			break;
		case OPT_EPHEMERAL:
			c->ephemeral = true;
			break;
		case OPT_HELP:
			fputs(usage, stdout);
			return 1;
		case OPT_VERSION:
			puts("profild " PROFIL_VERSION);
			return 1;
		case '?':
			err = -EINVAL;
			break;
		default:
			err = set_number(c, opt, options[at].name, optarg);
		}
		if (err)
			return err;
	}
	if (optind < argc) {
		log_err("%s: unexpected argument; see profild --help", argv[optind]);
		return -EINVAL;
	}
	return 0;
}
