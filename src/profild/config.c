/* config.c - profild's options, from the command line and a file */
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "core/observers.h"
#include "core/shared_maps.h"
#include "base/config_file.h"
#include "base/log.h"
#include "core/proto.h"
#include "base/cleanup.h"

#define ALL_COUNTERS ((uint64_t)PROFIL_MAX_CHUNKS * PROFIL_CHUNK_COUNTERS)
#define ALL_CONNECTIONS 512
#define ALL_CHILDREN (PROFIL_BUCKETS * PROFIL_BUCKET_ENTRIES)
#define ALL_TABLES (1ull << 30)
#define ALL_SLOTS (PROFIL_MAX_OBSERVERS - PROFIL_MACHINE_SLOTS)
#define ALL_EVENTS (PROFIL_TARGET_EVENTS / PROFIL_TARGET_EVENT)

static const char usage[] =
	"usage: profild [options]\n"
	"Counts samples in the kernel for processes that call profil(3), and for profilctl(1).\n"
	"\n"
	"  --config FILE           read options from FILE as well; SIGHUP reads the limits again\n"
	"  --socket PATH           listen on this socket [" PROFIL_SOCKET_DEFAULT "]\n"
	"  --rate HZ               samples per second of CPU time [100]\n"
	"  --fast-rate HZ          the same for PROF_FAST [1000]\n"
	"  --restrict-fast         refuse PROF_FAST to all users but root\n"
	"  --machine[=HZ][,stacks] profile the whole machine from the start [--rate]\n"
	"  --clock CLOCK           tick, cpu-clock, cycles or auto [auto]\n"
	"  --mirror-interval MS    add counts to the buffers at this interval [100]\n"
	"  --client-timeout MS     time limit of an operation on a client's memory [5000]\n"
	"  --replay FILE           take samples from FILE, not from the kernel\n"
	"  --fd-store              keep profiles over a restart in the service manager's fd store\n"
	"  --ephemeral             end all profiles when this daemon ends\n"
	"  --user-profiles N       profiles and attachments of one user at a time [256]\n"
	"  --user-regions N        regions of one user at a time [16386]\n"
	"  --user-bins N           counters of one user at a time [16777216]\n"
	"  --user-children N       children that inherit a target of one user [8192]\n"
	"  --user-rate HZ          highest rate of one user's attachments [1000]\n"
	"  --user-tables MIB       tables of one user's attachments [128]\n"
	"  --user-events N         attachments of one user to events other than CPU time [2]\n"
	"  --user-connections N    connections of one user at a time [64]\n"
	"  --user-requests N       requests of one user per second [2000]\n"
	"  --help, --version\n";

enum {
	OPT_CONFIG = 256,
	OPT_SOCKET,
	OPT_RESTRICT_FAST,
	OPT_CLOCK,
	OPT_MACHINE,
	OPT_REPLAY,
	OPT_FD_STORE,
	OPT_EPHEMERAL,
	OPT_HELP,
	OPT_VERSION,
	OPT_NUMBER, /* + index in numbers[] */
};

/* The unit of a number. */
enum kind { COUNT, RATE, MILLISECONDS, MIB };

#define USER(what) offsetof(struct config, quota.user.of[what])

static const struct number {
	const char *name;
	enum kind kind;
	uint64_t max;
	size_t where; /* in struct config */
} numbers[] = {
	{ "rate", RATE, RATE_MAX_HZ, offsetof(struct config, period_ns) },
	{ "fast-rate", RATE, RATE_MAX_HZ, offsetof(struct config, fast_period_ns) },
	{ "mirror-interval", MILLISECONDS, 60000, offsetof(struct config, mirror_interval_ns) },
	{ "client-timeout", MILLISECONDS, 60000, offsetof(struct config, client_timeout_ns) },
	{ "user-profiles", COUNT, PROFIL_MAX_TARGETS, USER(RES_PROFILES) },
	{ "user-regions", COUNT, PROFIL_MAX_REGIONS, USER(RES_REGIONS) },
	{ "user-bins", COUNT, ALL_COUNTERS, USER(RES_COUNTERS) },
	{ "user-children", COUNT, ALL_CHILDREN, USER(RES_CHILDREN) },
	{ "user-rate", COUNT, RATE_MAX_HZ, USER(RES_SAMPLES) },
	{ "user-tables", MIB, ALL_TABLES >> 20, USER(RES_TABLE_BYTES) },
	{ "user-events", COUNT, ALL_EVENTS, USER(RES_EVENTS) },
	{ "user-connections", COUNT, ALL_CONNECTIONS, USER(RES_CONNECTIONS) },
	{ "user-requests", COUNT, 1000000, offsetof(struct config, quota.requests.a_second) },
};

static const struct number machine_rate = { "machine", RATE, RATE_MAX_HZ,
					    offsetof(struct config, machine_period_ns) };

#define NUMBER(i) required_argument, NULL, OPT_NUMBER + (i)

static const struct option options[] = {
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "restrict-fast", no_argument, NULL, OPT_RESTRICT_FAST },
	{ "clock", required_argument, NULL, OPT_CLOCK },
	{ "machine", optional_argument, NULL, OPT_MACHINE },
	{ "replay", required_argument, NULL, OPT_REPLAY },
	{ "fd-store", no_argument, NULL, OPT_FD_STORE },
	{ "ephemeral", no_argument, NULL, OPT_EPHEMERAL },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "rate", NUMBER(0) },
	{ "fast-rate", NUMBER(1) },
	{ "mirror-interval", NUMBER(2) },
	{ "client-timeout", NUMBER(3) },
	{ "user-profiles", NUMBER(4) },
	{ "user-regions", NUMBER(5) },
	{ "user-bins", NUMBER(6) },
	{ "user-children", NUMBER(7) },
	{ "user-rate", NUMBER(8) },
	{ "user-tables", NUMBER(9) },
	{ "user-events", NUMBER(10) },
	{ "user-connections", NUMBER(11) },
	{ "user-requests", NUMBER(12) },
	{ NULL, 0, NULL, 0 },
};

static const struct config defaults = {
	.socket_path = PROFIL_SOCKET_DEFAULT,
	.period_ns = NSEC_PER_SEC / 100,
	.fast_period_ns = NSEC_PER_SEC / 1000,
	.mirror_interval_ns = NSEC_PER_SEC / 10,
	.client_timeout_ns = 5 * NSEC_PER_SEC,
	.quota = {
		.user.of = {
			[RES_CONNECTIONS] = 64,
			[RES_PROFILES] = 256,
			[RES_TARGETS] = 512,
			[RES_REGIONS] = 2 * PROFIL_TARGET_REGIONS,
			[RES_COUNTERS] = 16777216,
			[RES_CHILDREN] = 8192,
			[RES_SAMPLES] = 1000,
			[RES_OPERATIONS] = 2,
			[RES_TABLE_BYTES] = 128 << 20,
			[RES_EVENTS] = 2,
			[RES_TABLE_SLOTS] = 64,
			[RES_WIDE] = 2,
		},
		.machine.of = {
			[RES_CONNECTIONS] = ALL_CONNECTIONS,
			[RES_PROFILES] = PROFIL_MAX_TARGETS,
			[RES_TARGETS] = PROFIL_MAX_TARGETS,
			[RES_REGIONS] = PROFIL_MAX_REGIONS,
			[RES_COUNTERS] = ALL_COUNTERS,
			[RES_CHILDREN] = ALL_CHILDREN,
			[RES_SAMPLES] = UINT64_MAX,
			[RES_OPERATIONS] = 64,
			[RES_TABLE_BYTES] = ALL_TABLES,
			[RES_EVENTS] = ALL_EVENTS,
			[RES_TABLE_SLOTS] = ALL_SLOTS,
			[RES_WIDE] = PROFIL_MAX_WIDE,
		},
		.reserve.of = {
			[RES_CONNECTIONS] = 16,
			[RES_PROFILES] = 64,
			[RES_TARGETS] = 64,
			[RES_REGIONS] = PROFIL_TARGET_REGIONS + 255,
			[RES_COUNTERS] = 16ull * PROFIL_CHUNK_COUNTERS,
			[RES_CHILDREN] = 1024,
			[RES_OPERATIONS] = 4,
			[RES_TABLE_BYTES] = 128 << 20,
			[RES_EVENTS] = 8,
			[RES_TABLE_SLOTS] = 64,
			[RES_WIDE] = 4,
		},
		/* What one profile or recording of usual size takes. Connections: make_room(). */
		.least.of = {
			[RES_PROFILES] = 2,
			[RES_TARGETS] = 4,
			[RES_REGIONS] = 256,
			[RES_COUNTERS] = 65536,
			[RES_OPERATIONS] = 1,
			[RES_TABLE_BYTES] = 16 << 20,
			[RES_EVENTS] = 1,
			[RES_TABLE_SLOTS] = 2,
			[RES_WIDE] = 1,
		},
		.requests = { 2000, 2000 },
		/* A quarter of the main thread's time, at most 2 ms in a row; all users a half. */
		.time_ns = { 250000000, 2000000 },
		.everyones_time_ns = { 500000000, 4000000 },
	},
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
		*(uint64_t *)where = value;
		break;
	case MIB:
		*(uint64_t *)where = value << 20;
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

/* "97", "stacks", "97,stacks" or, in a file, "97 stacks". */
static int set_machine(struct config *c, const char *text)
{
	size_t n = strcspn(text, ", ");
	char rate[32];

	c->machine = true;
	if (!strcmp(text, "stacks")) {
		c->stacks = true;
		return 0;
	}
	if (text[n] && strcmp(text + n + 1, "stacks") != 0) {
		log_err("--machine %s: must be a rate, 'stacks', or both", text);
		return -EINVAL;
	}
	c->stacks = text[n];
	snprintf(rate, sizeof(rate), "%.*s", (int)n, text);
	return set_number(c, &machine_rate, rate);
}

/* Sets an option that may be in a file as well. */
static int set_value(struct config *c, int opt, const char *value)
{
	switch (opt) {
	case OPT_RESTRICT_FAST:
		c->restrict_fast = true;
		return 0;
	case OPT_CLOCK:
		return set_clock(c, value);
	case OPT_MACHINE:
		c->machine = true;
		return value ? set_machine(c, value) : 0;
	default:
		return set_number(c, &numbers[opt - OPT_NUMBER], value);
	}
}

static const struct option *option_of_file(const char *name)
{
	for (const struct option *o = options; o->name; o++) {
		if (strcmp(o->name, name) == 0 &&
		    (o->val >= OPT_NUMBER || o->val == OPT_CLOCK || o->val == OPT_MACHINE ||
		     o->val == OPT_RESTRICT_FAST))
			return o;
	}
	return NULL;
}

/* A line of the file. */
static int take_line(void *config, const char *name, char *value)
{
	const struct option *o = option_of_file(name);

	if (!o) {
		log_err("%s: not an option of the configuration file; see profild(8)", name);
		return -EINVAL;
	}
	if ((value && o->val != OPT_MACHINE && strpbrk(value, " \t")) ||
	    (o->has_arg != optional_argument && !value != (o->has_arg == no_argument))) {
		log_err("%s: takes %s value", name, o->has_arg == no_argument ? "no" : "one");
		return -EINVAL;
	}
	return set_value(config, o->val, value);
}

/* No option of the file keeps its text. */
static int read_file(struct config *c, const char *path)
{
	__cleanup(freep) char *text = NULL;

	return config_file_read(&text, path, take_line, c);
}

int config_parse(struct config *c, int argc, char **argv)
{
	int opt, err = 0;

	*c = defaults;
	c->argc = argc;
	c->argv = argv;
	optind = 0; /* restarts getopt for config_reload() */
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
	c->quota.requests.burst = c->quota.requests.a_second;
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
		log_notice("rates, clock and interval are unchanged: they need a restart");
	c->quota = fresh.quota;
	c->restrict_fast = fresh.restrict_fast;
	return 0;
}
