/* options.c - the command line: one table of options, of which each verb takes some */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

#include "format.h"
#include "options.h"

/* A page shows when it was hot, also where nobody has asked for that. */
#define HTML_SLICES 100
#define HTML_SLICE_NS 100000000u

struct option_row {
	enum option_bits bit;
	int letter; /* beyond a char: it has a long name only */
	const char *name;
	const char *arg;
	const char *help;
};

static const struct option_row rows[] = {
	{ OPTION_RATE, 'F', "rate", "HZ", "ticks a second (default: the daemon's rate)" },
	{ OPTION_DURATION, 'd', "duration", "SECONDS", "stop profiling after so long" },
	{ OPTION_OUTPUT, 'o', "output", "FILE", "write there; without -f, a profile to keep" },
	{ OPTION_FORMAT, 'f', "format", "FORMAT", "see below" },
	{ OPTION_JSON, 259, "json", NULL, "print JSON: 'profilctl schema' describes it" },
	{ OPTION_BY, 260, "by", "WHAT",
	  "sum up text by function, inlined, line, instruction,\n                            "
	  "object or thread" },
	{ OPTION_SLICES, 265, "slices", "NxT", "and when: at most N slices of T seconds or more" },
	{ OPTION_THREADS, 266, "threads", NULL, "keep apart the threads, for --by thread" },
	{ OPTION_COMM, 261, "comm", "NAME", "processes of this name" },
	{ OPTION_EXE, 262, "exe", "FILE", "processes that run this file" },
	{ OPTION_UNIT, 263, "unit", "UNIT", "processes of this systemd unit" },
	{ OPTION_CGROUP, 264, "cgroup", "PATH", "processes in this cgroup or below it" },
	{ OPTION_BATCH, 'b', "batch", NULL, "print tables instead of a screen" },
	{ OPTION_COUNT, 'n', "count", "N", "end after so many tables" },
	{ OPTION_INTERVAL, 'i', "interval", "SECONDS", "time between tables (default: 2)" },
	{ OPTION_CLOCK, 256, "clock", "CLOCK", "tick, cpu-clock, cycles or auto (private daemon)" },
	{ OPTION_USER_ONLY, 257, "user-only", NULL, "leave out ticks in kernel mode" },
	{ OPTION_NO_INHERIT, 258, "no-inherit", NULL, "leave out child processes" },
	{ OPTION_SOCKET, 's', "socket", "PATH", "the daemon's socket" },
	{ OPTION_HELP, 'h', "help", NULL, "show this help" },
};

#define NROWS (sizeof(rows) / sizeof(*rows))

static int parse_rate(struct options *o, const char *arg)
{
	char *end;
	unsigned long long hz;

	errno = 0;
	hz = strtoull(arg, &end, 10);
	if (errno || end == arg || *end || *arg == '-' || hz < OPTIONS_RATE_MIN ||
	    hz > OPTIONS_RATE_MAX) {
		log_err("rate %s: must be a whole number from %d to %d Hz", arg, OPTIONS_RATE_MIN,
			OPTIONS_RATE_MAX);
		return -EINVAL;
	}
	o->rate_hz = hz;
	return 0;
}

static int parse_seconds(__u64 *ns, const char *what, const char *arg)
{
	char *end;
	double s;

	s = strtod(arg, &end);
	if (end == arg || *end || !isfinite(s) || s < 0.001 || s > 1e9) {
		log_err("%s %s: must be from 0.001 to 1000000000 seconds", what, arg);
		return -EINVAL;
	}
	*ns = (__u64)(s * 1e9);
	return 0;
}

static int parse_count(struct options *o, const char *arg)
{
	char *end;

	errno = 0;
	o->count = strtoull(arg, &end, 10);
	if (!errno && end != arg && !*end && *arg != '-' && o->count)
		return 0;
	log_err("count %s: must be a whole number from 1 on", arg);
	return -EINVAL;
}

/* Two slices become one when there is no room: an even number leaves none over. */
static int parse_slices(struct options *o, const char *arg)
{
	char *end;
	unsigned long n = strtoul(arg, &end, 10);

	if (end == arg || *end != 'x' || n < 2 || n > OPTIONS_SLICES_MAX || n % 2) {
		log_err("slices %s: must be an even number from 2 to %d, an x, and seconds: 60x1",
			arg, OPTIONS_SLICES_MAX);
		return -EINVAL;
	}
	o->nslices = n;
	return parse_seconds(&o->slice_ns, "slices of", end + 1);
}

/* Where nothing is said nobody can be meant. */
static int parse_name(const char **out, const char *what, const char *arg)
{
	*out = arg;
	if (*arg)
		return 0;
	log_err("%s: no name given", what);
	return -EINVAL;
}

/* The path of a cgroup may be written as the file system has it. */
static int parse_cgroup(struct options *o, const char *arg)
{
	static const char mount[] = "/sys/fs/cgroup";
	size_t n = sizeof(mount) - 1;

	if (*arg != '/') {
		log_err("cgroup %s: must be a path from / on, as 'cat /proc/PID/cgroup' shows it",
			arg);
		return -EINVAL;
	}
	o->select.cgroup = !strncmp(arg, mount, n) && arg[n] == '/' ? arg + n : arg;
	return 0;
}

static int parse_exe(struct options *o, const char *arg)
{
	static char path[PATH_MAX];

	o->select.exe = realpath(arg, path);
	if (o->select.exe)
		return 0;
	log_err("exe %s: %s; its path is needed, see 'ls -l /proc/PID/exe'", arg, strerror(errno));
	return -EINVAL;
}

static int parse_format(struct options *o, const char *arg)
{
	char names[256];

	o->format = format_find(arg);
	if (o->format)
		return 0;
	log_err("format %s: must be %s", arg, format_names(names, sizeof(names)));
	return -EINVAL;
}

static int parse_by(struct options *o, const char *arg)
{
	if (!rows_by_find(&o->by, arg))
		return 0;
	log_err("by %s: must be function, inlined, line, instruction, object or thread", arg);
	return -EINVAL;
}

static int parse_clock(struct options *o, const char *arg)
{
	static const char *const clocks[] = { "tick", "cpu-clock", "cycles", "auto" };

	for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		if (!strcmp(arg, clocks[i])) {
			o->clock = arg;
			return 0;
		}
	}
	log_err("clock %s: must be tick, cpu-clock, cycles or auto", arg);
	return -EINVAL;
}

static int take(struct options *o, enum option_bits bit, const char *arg)
{
	switch (bit) {
	case OPTION_RATE:
		return parse_rate(o, arg);
	case OPTION_DURATION:
		return parse_seconds(&o->duration_ns, "duration", arg);
	case OPTION_INTERVAL:
		return parse_seconds(&o->interval_ns, "interval", arg);
	case OPTION_SLICES:
		return parse_slices(o, arg);
	case OPTION_COUNT:
		return parse_count(o, arg);
	case OPTION_EXE:
		return parse_exe(o, arg);
	case OPTION_COMM:
		return parse_name(&o->select.comm, "comm", arg);
	case OPTION_UNIT:
		return parse_name(&o->select.unit, "unit", arg);
	case OPTION_CGROUP:
		return parse_cgroup(o, arg);
	case OPTION_BATCH:
		o->batch = true;
		return 0;
	case OPTION_FORMAT:
		return parse_format(o, arg);
	case OPTION_CLOCK:
		return parse_clock(o, arg);
	case OPTION_OUTPUT:
		o->output = arg;
		return 0;
	case OPTION_SOCKET:
		o->socket = arg;
		return 0;
	case OPTION_USER_ONLY:
		o->user_only = true;
		return 0;
	case OPTION_NO_INHERIT:
		o->no_inherit = true;
		return 0;
	case OPTION_THREADS:
		o->threads = true;
		return 0;
	case OPTION_BY:
		return parse_by(o, arg);
	case OPTION_JSON:
		o->format = format_find("json");
		return 0;
	case OPTION_HELP:
		o->help = true;
		return 0;
	}
	return -EINVAL;
}

/* Fills in what getopt_long() wants to know of the rows in @allowed. */
static void tables(unsigned int allowed, char *letters, struct option *longs)
{
	*letters++ = '+'; /* a command's own options are its own */
	*letters++ = ':';
	for (size_t i = 0; i < NROWS; i++) {
		const struct option_row *r = &rows[i];

		if (!(allowed & r->bit))
			continue;
		*longs++ = (struct option){ r->name, r->arg != NULL, NULL, r->letter };
		if (r->letter >= 256)
			continue;
		*letters++ = (char)r->letter;
		if (r->arg)
			*letters++ = ':';
	}
	*letters = '\0';
	*longs = (struct option){ 0 };
}

int options_parse(struct options *o, unsigned int allowed, int argc, char **argv)
{
	char letters[2 * NROWS + 3];
	struct option longs[NROWS + 1];
	int c;

	tables(allowed | OPTION_HELP, letters, longs);
	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		size_t i = 0;

		if (c == '?' || c == ':') {
			log_err("%s: %s %s; 'profilctl %s --help' lists the options", o->verb,
				c == ':' ? "no value after" : "unknown or wrong option",
				argv[optind - 1], o->verb);
			return -EINVAL;
		}
		while (rows[i].letter != c)
			i++;
		if (take(o, rows[i].bit, optarg) < 0)
			return -EINVAL;
	}
	if (allowed & OPTION_SLICES && o->format == format_find("html") && !o->slice_ns) {
		o->nslices = HTML_SLICES;
		o->slice_ns = HTML_SLICE_NS;
	}
	o->threads |= o->by == ROWS_THREAD;
	o->argc = argc - optind;
	o->argv = argv + optind;
	return 0;
}

int options_pid(pid_t *out, const char *arg)
{
	unsigned long pid;
	char *end;

	errno = 0;
	pid = strtoul(arg, &end, 10);
	if (errno || end == arg || *end || *arg == '-' || !pid || pid > INT32_MAX) {
		log_err("%s is no process id", arg);
		return -EINVAL;
	}
	*out = (pid_t)pid;
	return 0;
}

void options_help(FILE *f, unsigned int allowed)
{
	char names[256];

	allowed |= OPTION_HELP;
	for (size_t i = 0; i < NROWS; i++) {
		const struct option_row *r = &rows[i];
		char left[40], letter[8] = "   ";

		if (!(allowed & r->bit))
			continue;
		if (r->letter < 256)
			snprintf(letter, sizeof(letter), "-%c,", r->letter);
		snprintf(left, sizeof(left), "%s --%s %s", letter, r->name, r->arg ? r->arg : "");
		fprintf(f, "  %-24s  %s\n", left, r->help);
	}
	if (allowed & OPTION_FORMAT)
		fprintf(f, "\nA FORMAT is %s.\n", format_names(names, sizeof(names)));
}
