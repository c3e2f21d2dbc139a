/* config.c - what profild was told, on its command line and in a file */
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "core/layout.h"
#include "core/log.h"
#include "core/proto.h"
#include "core/scope.h"

#define ALL_BINS ((uint64_t)PROFIL_MAX_CHUNKS * PROFIL_CHUNK_COUNTERS)
#define ALL_CONNECTIONS 512

static const char usage[] =
	"usage: profild [options]\n"
	"Profiles processes in the kernel and carries the counts into their buffers.\n"
	"\n"
	"  --config FILE           options from FILE, SIGHUP reads the limits again\n"
	"  --socket PATH           where clients connect [" PROFIL_SOCKET_DEFAULT "]\n"
	"  --rate HZ               ticks a second of CPU time [100]\n"
	"  --fast-rate HZ          the same with PROF_FAST [1000]\n"
	"  --restrict-fast         PROF_FAST only for root\n"
	"  --clock CLOCK           tick, cpu-clock, cycles or auto [auto]\n"
	"  --mirror-interval MS    how often counts reach the buffers [100]\n"
	"  --replay FILE           ticks from FILE instead of the kernel\n"
	"  --fd-store              profiles outlive a restart in the service manager's store\n"
	"  --ephemeral             profiles end with this daemon, however it ends\n"
	"  --user-profiles N       profiles of one user at a time [256]\n"
	"  --user-regions N        regions of one user at a time [16384]\n"
	"  --user-bins N           bins of one user at a time [16777216]\n"
	"  --user-rate HZ          the fastest rate for a user [10000]\n"
	"  --user-connections N    connections of one user at a time [64]\n"
	"  --user-requests N       requests of one user a second [2000]\n"
	"  --help, --version\n";

enum {
	OPT_CONFIG = 256,
	OPT_SOCKET,
	OPT_RESTRICT_FAST,
	OPT_CLOCK,
	OPT_REPLAY,
	OPT_FD_STORE,
	OPT_EPHEMERAL,
	OPT_HELP,
	OPT_VERSION,
	OPT_NUMBER, /* and those after it: places in numbers[] */
};

/* How a number is kept. */
enum kind { COUNT, BINS, RATE, MILLISECONDS };

static const struct number {
	const char *name;
	enum kind kind;
	uint64_t max;
	size_t where; /* in struct config */
} numbers[] = {
	{ "rate", RATE, RATE_MAX_HZ, offsetof(struct config, period_ns) },
	{ "fast-rate", RATE, RATE_MAX_HZ, offsetof(struct config, fast_period_ns) },
	{ "mirror-interval", MILLISECONDS, 60000, offsetof(struct config, mirror_interval_ns) },
	{ "user-profiles", COUNT, PROFIL_MAX_TARGETS, offsetof(struct config, user.profiles) },
	{ "user-regions", COUNT, PROFIL_MAX_REGIONS, offsetof(struct config, user.regions) },
	{ "user-bins", BINS, ALL_BINS, offsetof(struct config, user.bins) },
	{ "user-rate", COUNT, RATE_MAX_HZ, offsetof(struct config, user.rate_hz) },
	{ "user-connections", COUNT, ALL_CONNECTIONS, offsetof(struct config, user.connections) },
	{ "user-requests", COUNT, 1000000, offsetof(struct config, user.requests) },
};

#define NUMBER(i) required_argument, NULL, OPT_NUMBER + (i)

static const struct option options[] = {
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "restrict-fast", no_argument, NULL, OPT_RESTRICT_FAST },
	{ "clock", required_argument, NULL, OPT_CLOCK },
	{ "replay", required_argument, NULL, OPT_REPLAY },
	{ "fd-store", no_argument, NULL, OPT_FD_STORE },
	{ "ephemeral", no_argument, NULL, OPT_EPHEMERAL },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "rate", NUMBER(0) },
	{ "fast-rate", NUMBER(1) },
	{ "mirror-interval", NUMBER(2) },
	{ "user-profiles", NUMBER(3) },
	{ "user-regions", NUMBER(4) },
	{ "user-bins", NUMBER(5) },
	{ "user-rate", NUMBER(6) },
	{ "user-connections", NUMBER(7) },
	{ "user-requests", NUMBER(8) },
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
		  .connections = 64,
		  .requests = 2000 },
	.all = { .profiles = PROFIL_MAX_TARGETS,
		 .regions = PROFIL_MAX_REGIONS,
		 .bins = ALL_BINS,
		 .rate_hz = RATE_MAX_HZ,
		 .connections = ALL_CONNECTIONS },
};

static int set_number(struct config *c, const struct number *n, const char *text)
{
	void *where = (char *)c + n->where;
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end || value < 1 || value > n->max) {
		log_err("--%s %s: not a number from 1 to %llu", n->name, text,
			(unsigned long long)n->max);
		return -EINVAL;
	}
	switch (n->kind) {
	case COUNT:
		*(uint32_t *)where = (uint32_t)value;
		break;
	case BINS:
		*(uint64_t *)where = value;
		break;
	case RATE:
		*(uint64_t *)where = period_of(value);
		break;
	case MILLISECONDS:
		*(uint64_t *)where = value * (NSEC_PER_SEC / 1000);
		break;
	}
	return 0;
}

static int set_clock(struct config *c, const char *text)
{
	static const char *const names[] = {
		[CLOCK_AUTO] = "auto",
		[CLOCK_TICK] = "tick",
		[CLOCK_CPU] = "cpu-clock",
		[CLOCK_CYCLES] = "cycles",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			c->clock = (enum clock_choice)i;
			return 0;
		}
	}
	log_err("--clock %s: must be tick, cpu-clock, cycles or auto", text);
	return -EINVAL;
}

/* What may stand in a file as well. */
static int set_value(struct config *c, int opt, const char *value)
{
	switch (opt) {
	case OPT_RESTRICT_FAST:
		c->restrict_fast = true;
		return 0;
	case OPT_CLOCK:
		return set_clock(c, value);
	default:
		return set_number(c, &numbers[opt - OPT_NUMBER], value);
	}
}

static const struct option *option_of_file(const char *name)
{
	for (const struct option *o = options; o->name; o++) {
		if (strcmp(o->name, name) == 0 &&
		    (o->val >= OPT_NUMBER || o->val == OPT_CLOCK || o->val == OPT_RESTRICT_FAST))
			return o;
	}
	return NULL;
}

/* One line: an option's name and its value, up to a '#'. */
static int read_line(struct config *c, char *line)
{
	static const char blank[] = " \t\n";
	char *name, *value, *rest, *more = NULL;
	const struct option *o;

	line[strcspn(line, "#")] = 0;
	name = strtok_r(line, blank, &more);
	if (!name)
		return 0;
	value = strtok_r(NULL, blank, &more);
	rest = strtok_r(NULL, blank, &more);
	o = option_of_file(name);
	if (!o) {
		log_err("%s: no option for a file; see profild(8)", name);
		return -EINVAL;
	}
	if (rest || !value != (o->has_arg == no_argument)) {
		log_err("%s: takes %s value", name, o->has_arg == no_argument ? "no" : "one");
		return -EINVAL;
	}
	return set_value(c, o->val, value);
}

/* Where there is no such file, nothing is changed. */
static int read_file(struct config *c, const char *path)
{
	__cleanup(fclosep) FILE *f = fopen(path, "re");
	__cleanup(freep) char *line = NULL;
	int err = f || errno == ENOENT ? 0 : -errno;
	size_t room = 0;

	if (err)
		log_err("cannot read %s: %s", path, strerror(-err));
	for (unsigned int n = 1; f && !err && getline(&line, &room, f) >= 0; n++) {
		err = read_line(c, line);
		if (err)
			log_err("%s: line %u is wrong, as said before", path, n);
	}
	return err;
}

int config_parse(struct config *c, int argc, char **argv)
{
	int opt, err = 0;

	*c = defaults;
	c->argc = argc;
	c->argv = argv;
	optind = 0; /* from the beginning, also when it is read again */
	while (!err && (opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case OPT_CONFIG:
			c->file = optarg;
			err = read_file(c, optarg);
			break;
		case OPT_SOCKET:
			c->socket_path = optarg;
			break;
		case OPT_REPLAY:
			c->replay_path = optarg;
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
			return -EINVAL;
		default:
			err = set_value(c, opt, optarg);
		}
	}
	if (!err && optind < argc) {
		log_err("%s: unexpected argument; see profild --help", argv[optind]);
		return -EINVAL;
	}
	return err;
}

int config_reload(struct config *c)
{
	struct config fresh;
	int err = config_parse(&fresh, c->argc, c->argv);

	if (err < 0)
		return err;
	if (fresh.period_ns != c->period_ns || fresh.fast_period_ns != c->fast_period_ns ||
	    fresh.mirror_interval_ns != c->mirror_interval_ns || fresh.clock != c->clock)
		log_notice("rates, clock and interval stay as they were: they need a restart");
	c->user = fresh.user;
	c->restrict_fast = fresh.restrict_fast;
	return 0;
}
