/* option_table.c - the command line: one table of all options, of which each verb takes some */
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/config_file.h"
#include "base/log.h"

#include "core/observe_maps.h"
#include "formats/format.h"
#include "profilctl/util/edit_distance.h"
#include "option_table.h"
#include "option_values.h"

/* A page shows samples over time even without --slices. */
#define HTML_SLICES 100
#define HTML_SLICE_NS 100000000u

/* getopt_long()'s value for the long name of row 0. */
#define LONG_FIRST 256

/* An option that sets a member of these types. */
enum option_type { IS_FLAG, IS_TEXT, IS_NUMBER, IS_SECONDS };
#define FLAG(m) .type = IS_FLAG, .at = offsetof(struct options, m)
#define TEXT(m) .type = IS_TEXT, .at = offsetof(struct options, m)
#define NUMBER(m) .type = IS_NUMBER, .at = offsetof(struct options, m)
#define SECONDS(m) .type = IS_SECONDS, .at = offsetof(struct options, m)

struct option_row {
	__u64 bit;   /* verbs that take one of these bits have the option */
	char letter; /* 0: long name only */
	const char *name;
	const char *arg;
	const char *help; /* NULL: hidden */
	enum option_type type;
	size_t at;	 /* the offset of the member in struct options */
	value_fn *value; /* NULL: sets the member */
	const char *instead;
};

static const struct option_row rows[] = {
	{ OPTION_RATE, 'F', "rate", "HZ",
	  "samples per second of CPU time (default: record and attach\n"
	  "                              999, otherwise the rate of the daemon)",
	  .value = value_rate },
	{ OPTION_DURATION, 'd', "duration", "SECONDS", "stop profiling after this time",
	  SECONDS(duration_ns) },
	{ OPTION_MACHINE_DURATION, 'd', "duration", "SECONDS",
	  "report, diff: profile the seconds that follow; spool: stop\n"
	  "                              after this time",
	  SECONDS(duration_ns) },
	{ OPTION_OUTPUT, 'o', "output", "FILE",
	  "write to FILE ('-': standard output); without -f, a profile\n"
	  "                              that report, diff and annotate read",
	  TEXT(output) },
	{ OPTION_FORMAT, 'f', "format", "FORMAT",
	  "output format, see below (diff: text, json or html)", .value = value_format },
	{ OPTION_JSON, 0, "json", NULL, "print JSON; 'profilctl schema' prints its schema",
	  .value = value_json },
	{ OPTION_BY, 0, "by", "WHAT",
	  "group text by function, inlined, line, instruction, object,\n"
	  "                              process, command, thread, cgroup, unit, container, host,\n"
	  "                              wait or lock",
	  .value = value_by },
	{ OPTION_FILTER, 0, "object", "NAME", "only samples in this file; * and ? are wildcards",
	  TEXT(filter.object) },
	{ OPTION_FILTER, 0, "process", "PID|NAME", "only samples of this process",
	  TEXT(filter.process) },
	{ OPTION_FILTER, 0, "command", "NAME", "only samples of processes with this name",
	  TEXT(filter.command) },
	{ OPTION_FILTER, 0, "unit", "UNIT", "only samples of this systemd unit",
	  TEXT(filter.unit) },
	{ OPTION_FILTER, 0, "container", "ID|NAME", "only samples in this container",
	  .value = value_only_container },
	{ OPTION_FILTER, 0, "pod", "UID", "only samples in this pod of Kubernetes",
	  TEXT(filter.pod) },
	{ OPTION_FILTER, 0, "function", "NAME",
	  "only samples in this function, named as for annotate", TEXT(filter.function) },
	{ OPTION_FILTER, 0, "state", "STATE[,STATE...]",
	  "only the time that threads were running, runnable or asleep\n"
	  "                              (record --wall)",
	  .value = value_states },
	{ OPTION_FOLD_KERNEL, 0, "fold-kernel", NULL,
	  "count kernel samples at the place where user mode was left", FLAG(fold_kernel) },
	{ OPTION_TREE, 0, "tree", NULL, "show calls from the start of each thread (record -g)",
	  FLAG(tree) },
	{ OPTION_TREE, 0, "wakers", "FUNCTION",
	  "show what woke up threads that slept in this function\n"
	  "                              (record --wakers)",
	  TEXT(wakers) },
	{ OPTION_TREE, 0, "chains", NULL, "show wakers as callees of what slept (record --wakers)",
	  FLAG(chains) },
	{ OPTION_TREE, 0, "callers", "FUNCTION", "show what calls this function (record -g)",
	  TEXT(callers) },
	{ OPTION_TREE, 0, "callees", "FUNCTION", "show what this function calls (record -g)",
	  TEXT(callees) },
	{ OPTION_SPAN, 0, "since", "TIME",
	  "show the spool's profiles from this time on: 03:00,\n"
	  "                              yesterday, \"2026-11-22 03:00\", -1h",
	  TEXT(since) },
	{ OPTION_SPAN, 0, "until", "TIME", "show the spool's profiles up to this time",
	  TEXT(until) },
	{ OPTION_SPOOL, 0, "spool", "DIR",
	  "directory of the spool (default: /var/lib/profil-spool)", TEXT(spool) },
	{ OPTION_KEEP, 0, "max-age", "TIME", "spool: remove older profiles (default: 7d)",
	  .value = value_max_age },
	{ OPTION_KEEP, 0, "max-size", "BYTES",
	  "spool: remove the oldest above this size (default: 512M)", .value = value_max_size },
	{ OPTION_PUSH, 0, "once", NULL, "push: end when all profiles in the spool are sent",
	  FLAG(once) },
	{ OPTION_PUSH, 0, "endpoint", "URL", "push: where to, instead of an operand",
	  TEXT(endpoint) },
	{ OPTION_PUSH, 0, "header", "NAME: VALUE", "push: send this with each request",
	  .value = value_header },
	{ OPTION_PUSH, 0, "max-daily", "BYTES",
	  "push: count light stacks in their callers above this a day\n"
	  "                              (default: 200M)",
	  .value = value_max_daily },
	{ OPTION_PUSH, 0, "state", "FILE",
	  "push: note here what was sent (default:\n"
	  "                              /var/lib/profil-push/sent)",
	  TEXT(state) },
	{ OPTION_FEED, 0, "mounts-of", "PID",
	  "feed: files of root that process PID finds at their path have\n"
	  "                              no limits: 1, in a container with the host's /proc",
	  .value = value_mounts_of },
	{ OPTION_CONFIG, 0, "config", "FILE", "read options from FILE as well",
	  .value = value_nothing },
	{ OPTION_INPUT, 'i', "input", "FILE", "profile to read, instead of an operand",
	  TEXT(input) },
	{ OPTION_ROWS, 'n', "rows", "N", "show at most N rows, the hottest", NUMBER(rows) },
	{ OPTION_LIMIT, 0, "percent-limit", "PERCENT", "hide rows with a smaller share",
	  .value = value_limit },
	{ OPTION_ALL_ROWS, 'a', "all", NULL, "show also rows with few samples, or none",
	  FLAG(all) },
	{ OPTION_FAIL, 0, "fail-on", "PERCENT",
	  "end with status 7 if a function's share has grown by so many\n"
	  "                              points or more, and not by chance",
	  .value = value_fail_on },
	{ OPTION_FULL_NAMES, 0, "full-names", NULL, "do not shorten names", FLAG(full_names) },
	{ OPTION_SLICES, 0, "slices", "NxT",
	  "show samples over time: N slices of T seconds or more", .value = value_slices },
	{ OPTION_THREADS, 0, "threads", NULL, "distinguish threads, also in stacks",
	  FLAG(threads) },
	{ OPTION_PID, 'p', "pid", "PID[,PID...]", "processes to profile, instead of operands",
	  .value = value_pid },
	{ OPTION_ALL, 'a', "all", NULL, "all processes that you may observe", FLAG(everything) },
	{ OPTION_EVENT, 'e', "event", "NAME", "sample an event, not CPU time; see 'list --events'",
	  .value = value_event },
	{ OPTION_EVENT, 0, "off-cpu", NULL, "record the time that threads sleep, with call stacks",
	  .value = value_off_cpu },
	{ OPTION_EVENT, 0, "branches", NULL, "record which branches the CPU takes, for compilers",
	  .value = value_branches },
	{ OPTION_WALL, 0, "wall", NULL,
	  "record all time of threads: on CPU, waiting for one, asleep", .value = value_wall },
	{ OPTION_LATENCY, 0, "latency", NULL,
	  "divide CPU time by the threads of the process that run with it",
	  .value = value_latency },
	{ OPTION_WAKERS, 0, "wakers", NULL, "like --wall, and record what wakes up threads",
	  .value = value_record_wakers },
	{ OPTION_PERIOD, 'c', "count", "N", "take one sample per N events, or ns of -e cpu-clock",
	  NUMBER(period) },
	{ OPTION_EVENTS, 0, "events", NULL, "list the events that -e takes on this machine",
	  FLAG(events) },
	{ OPTION_COMM, 0, "comm", "NAME", "processes with this name", .value = value_comm },
	{ OPTION_EXE, 0, "exe", "FILE", "processes that execute this file", .value = value_exe },
	{ OPTION_UNIT, 0, "unit", "UNIT", "processes of this systemd unit", .value = value_unit },
	{ OPTION_CGROUP, 0, "cgroup", "PATH", "processes in this cgroup and below it",
	  .value = value_cgroup },
	{ OPTION_CONTAINER, 0, "container", "ID|NAME", "processes in this container",
	  .value = value_container },
	{ OPTION_CONTAINER, 0, "pod", "UID", "processes in this pod of Kubernetes",
	  TEXT(select.pod) },
	{ OPTION_CHECK, 0, "check", "COMMAND",
	  "run COMMAND, in which {} is the program, with both programs\n"
	  "                              in turns, and compare their CPU time",
	  .value = value_check },
	{ OPTION_CHECK, 0, "optimized", "FILE", "the program after, for --check", TEXT(optimized) },
	{ OPTION_CHECK, 0, "rounds", "N", "runs of each program (default: 21)",
	  .value = value_rounds },
	{ OPTION_BATCH, 'b', "batch", NULL, "print tables instead of a screen", FLAG(batch) },
	{ OPTION_COUNT, 'n', "count", "N", "exit after N tables", NUMBER(count) },
	{ OPTION_INTERVAL, 'i', "interval", "SECONDS",
	  "time between tables (default: 2); of a spool, between\n"
	  "                              profiles (default: 60)",
	  SECONDS(interval_ns) },
	{ OPTION_CALL_GRAPH, 'g', "call-graph", "[=MODE]",
	  "record call stacks; MODE is auto, cfi (unwind tables only)\n"
	  "                              or fp (frame pointers only)",
	  .value = value_call_graph },
	{ OPTION_KERNEL_STACKS, 0, "kernel-stacks", NULL,
	  "like -g, and record the frames of the kernel", .value = value_kernel_stacks },
	{ OPTION_CALL_GRAPH, 0, "native", NULL,
	  "show an interpreter's own frames too, beside its functions", FLAG(native) },
	{ OPTION_CLOCK, 0, "clock", "CLOCK", "tick, cpu-clock, cycles or auto, of a private daemon",
	  .value = value_clock },
	{ OPTION_USER_ONLY, 0, "user-only", NULL, "exclude samples in kernel mode",
	  FLAG(user_only) },
	{ OPTION_NO_INHERIT, 0, "no-inherit", NULL, "exclude child processes", FLAG(no_inherit) },
	{ OPTION_QUIET, 'q', "quiet", NULL, "print errors only", FLAG(quiet) },
	{ OPTION_SOCKET, 's', "socket", "PATH", "socket of the daemon", TEXT(socket) },
	{ OPTION_HELP, 'h', "help", NULL, "show this help", FLAG(help) },

	/* Options of perf with an equivalent. */
	{ OPTION_BY, 0, "sort", "KEY[,KEY...]", NULL, .value = value_sort },
	{ OPTION_INPUT, 0, "stdio", NULL, NULL, .value = value_nothing },
	{ OPTION_INPUT, 0, "no-children", NULL, NULL, .value = value_nothing },
	{ OPTION_BATCH, 0, "stdio", NULL, NULL, FLAG(batch) },

	/* Options of perf without one. */
	{ OPTION_PID, 't', "tid", "TID",
	  .instead = "profile the process with --threads, then 'report --by thread'" },
	{ OPTION_PID, 'C', "cpu", "CPU", NULL,
	  .instead = "samples are not kept by CPU; leave it out" },
	{ OPTION_PID, 'u', "uid", "UID", NULL,
	  .instead = "use --cgroup /user.slice/user-UID.slice" },
	{ OPTION_INPUT, 0, "tui", NULL, NULL,
	  .instead = "use -f html, or pipe the text to a pager" },
	{ OPTION_INPUT, 0, "gtk", NULL, NULL, .instead = "use -f html" },
};

#define NROWS (sizeof(rows) / sizeof(*rows))

/* A value in brackets is optional, and only for the long name: -gFILE is not -g with a value. */
static int argument_of(const struct option_row *r)
{
	if (!r->arg)
		return no_argument;
	return *r->arg == '[' ? optional_argument : required_argument;
}

/* Fills in getopt_long()'s arguments for the rows in @allowed. */
static void getopt_begin(__u64 allowed, char *letters, struct option *longs)
{
	optind = 0; /* reinitializes getopt_long() */
	opterr = 0;
	if (allowed & OPTION_COMMAND)
		*letters++ = '+';
	*letters++ = ':';
	for (size_t i = 0; i < NROWS; i++) {
		const struct option_row *r = &rows[i];

		if (!(allowed & r->bit))
			continue;
		*longs++ = (struct option){ r->name, argument_of(r), NULL, LONG_FIRST + (int)i };
		if (!r->letter)
			continue;
		*letters++ = r->letter;
		if (argument_of(r) == required_argument)
			*letters++ = ':';
	}
	*letters = '\0';
	*longs = (struct option){ 0 };
}

/* The row for getopt_long()'s value @c, or NULL. */
static const struct option_row *row_of(__u64 allowed, int c)
{
	if (c >= LONG_FIRST)
		return &rows[c - LONG_FIRST];
	for (size_t i = 0; i < NROWS; i++) {
		if (allowed & rows[i].bit && rows[i].letter == c)
			return &rows[i];
	}
	return NULL;
}

/* The option that @typed is probably meant as, or NULL. */
static const char *resembling(__u64 allowed, const char *typed)
{
	const char *best = NULL;
	unsigned int least = UINT32_MAX;

	for (size_t i = 0; i < NROWS; i++) {
		const struct option_row *r = &rows[i];
		unsigned int d;

		if (!(allowed & r->bit) || !r->help || !edit_resembles(typed, r->name))
			continue;
		d = edit_distance(typed, r->name);
		if (d < least) {
			least = d;
			best = r->name;
		}
	}
	return best;
}

/* Prints that the option is one of report, if so: it filters a kept profile, or the machine's. */
static bool belongs_to_report(const struct options *o, __u64 allowed, const char *name)
{
	bool machine = !strncmp(o->verb, "machine", strlen("machine"));

	for (size_t i = 0; i < NROWS && (machine || allowed & OPTION_RATE); i++) {
		const struct option_row *r = &rows[i];

		if (!(r->bit & (OPTIONS_VIEW | OPTION_TREE)) || strcmp(name, r->name))
			continue;
		if (machine && r->bit & OPTIONS_VIEW) {
			log_err("%s: --%s is an option of report: 'profilctl machine report "
				"--%s%s%s'",
				o->verb, name, name, r->arg ? " " : "", r->arg ? r->arg : "");
			return true;
		}
		log_err("%s: --%s is an option of report, for a kept profile: use -o FILE%s, then "
			"'profilctl report --%s%s%s FILE'",
			o->verb, name, strcmp(o->verb, "top") ? "" : " with record or attach", name,
			r->arg ? " " : "", r->arg ? r->arg : "");
		return true;
	}
	return false;
}

/* Prints what is wrong with the option at which getopt_long() returned @c. */
static void refuse(const struct options *o, __u64 allowed, int c, const char *token)
{
	const struct option_row *r = optopt ? row_of(allowed, optopt) : NULL;
	const char letter[] = { '-', (char)optopt, '\0' };
	const char *meant;
	char name[64];

	if (r && c == ':') {
		log_err("%s: option %s needs a value: %s", o->verb,
			optopt < LONG_FIRST ? letter : token, r->arg);
	} else if (r) {
		log_err("%s: option --%s takes no value: %s", o->verb, r->name, token);
	} else if (optopt) {
		log_err("%s: invalid option %s; 'profilctl %s --help' lists the options", o->verb,
			letter, o->verb);
	} else {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(token + 2, "="), token + 2);
		if (belongs_to_report(o, allowed, name))
			return;
		meant = resembling(allowed, name);
		log_err("%s: invalid option --%s%s%s%s; 'profilctl %s --help' lists the options",
			o->verb, name, meant ? " (did you mean --" : "", meant ? meant : "",
			meant ? "?)" : "", o->verb);
	}
}

static int take(struct options *o, __u64 allowed, const struct option_row *r, bool by_letter,
		char *arg);

struct config_options {
	struct options *options;
	__u64 allowed;
};

/* An option of a file, by its long name. */
static int take_line(void *config, const char *name, char *value)
{
	const struct config_options *c = config;

	for (size_t i = 0; i < NROWS; i++) {
		const struct option_row *r = &rows[i];

		if (!(c->allowed & r->bit) || r->bit == OPTION_CONFIG || strcmp(r->name, name) != 0)
			continue;
		if (argument_of(r) != optional_argument &&
		    !value != (argument_of(r) == no_argument)) {
			log_err("%s: takes %s value", name, value ? "no" : "one");
			return -EINVAL;
		}
		return take(c->options, c->allowed, r, false, value);
	}
	log_err("%s: not an option of 'profilctl %s'", name, c->options->verb);
	return -EINVAL;
}

static int take_config(struct options *o, __u64 allowed, const char *path)
{
	struct config_options c = { o, allowed };

	return config_file_read(&o->config, path, take_line, &c);
}

/* Sets what @r is about. Returns NULL, or what is wrong with @arg. */
static const char *set(struct options *o, const struct option_row *r, char *arg)
{
	void *member = (char *)o + r->at;

	if (r->instead)
		return r->instead;
	if (r->value)
		return r->value(o, arg);
	switch (r->type) {
	case IS_TEXT:
		return value_text(member, arg);
	case IS_NUMBER:
		return value_number(member, arg);
	case IS_SECONDS:
		return value_seconds(member, arg);
	case IS_FLAG:
		*(bool *)member = true;
	}
	return NULL;
}

static int take(struct options *o, __u64 allowed, const struct option_row *r, bool by_letter,
		char *arg)
{
	char letter[] = "-?";
	const char *wrong;

	assert(r);
	letter[1] = r->letter;
	if (r->bit == OPTION_CONFIG)
		return take_config(o, allowed, arg);
	wrong = set(o, r, arg);
	if (!wrong)
		return 0;
	log_err("%s: %s%s%s%s: %s", o->verb, by_letter ? letter : "--", by_letter ? "" : r->name,
		arg && !r->instead ? " " : "", arg && !r->instead ? arg : "", wrong);
	return -EINVAL;
}

/* Adds the operands. Process ids can be separated by commas. */
static int add_operands(struct options *o, __u64 allowed, char **argv)
{
	bool pids = allowed & OPTION_PID && !(allowed & OPTION_COMMAND);
	int err = 0;

	for (; *argv && !err; argv++) {
		char *rest = *argv;

		while (pids && rest && !err)
			err = options_add(o, strsep(&rest, ","));
		if (!pids)
			err = options_add(o, *argv);
	}
	return !err && o->input ? options_add(o, (char *)o->input) : err;
}

/*
 * CPU time is sampled at a rate, that of cpu-clock also once for each number of ns; events at a
 * rate or once for each number of them.
 */
static int check_period(const struct options *o)
{
	bool of_clock = !o->event && o->clock_by_event;

	if (!o->period)
		return 0;
	if (!o->event && !of_clock)
		log_err("%s: -c counts events, but CPU time is sampled at a rate: use -F, or name "
			"an event by -e (the period of cpu-clock is in ns)",
			o->verb);
	else if (o->rate_hz)
		log_err("%s: -F is a rate, and -c a number of %s for each sample: give one",
			o->verb, of_clock ? "ns" : "events");
	else if (of_clock &&
		 (o->period < OPTIONS_PERIOD_MIN_NS || o->period > OPTIONS_PERIOD_MAX_NS))
		log_err("%s: -c %llu: the period of cpu-clock is in ns of CPU time, from %d to %d "
			"(%d to %d Hz)",
			o->verb, o->period, OPTIONS_PERIOD_MIN_NS, OPTIONS_PERIOD_MAX_NS,
			OPTIONS_RATE_MAX, OPTIONS_RATE_MIN);
	else
		return 0;
	return -EINVAL;
}

/* Trees are text of functions, also in a file. */
static int check_tree(struct options *o)
{
	const char *which = o->tree	 ? "--tree"
			    : o->callers ? "--callers"
			    : o->callees ? "--callees"
					 : "--wakers";
	int n = o->tree + !!o->callers + !!o->callees + !!o->wakers;

	if (!n)
		return 0;
	if (!o->format)
		o->format = format_find("text");
	if (n == 1 && !o->format->write && o->by == ROWS_FUNCTION)
		return 0;
	if (n > 1)
		log_err("%s: --tree, --callers, --callees and --wakers are different trees: give "
			"one",
			o->verb);
	else if (o->format->write)
		log_err("%s: %s prints text, and not the format %s: leave out one of them", o->verb,
			which, o->format->name);
	else
		log_err("%s: %s shows functions, and not rows by %s: leave out one of them",
			o->verb, which, rows_by_name(o->by));
	return -EINVAL;
}

/* The option that only text obeys, if one was given; NULL: none. */
static const char *option_of_text(const struct options *o, __u64 allowed)
{
	if (allowed & OPTION_BY && o->by != ROWS_FUNCTION)
		return "--by";
	if (o->rows)
		return "--rows";
	if (o->least_percent > 0)
		return "--percent-limit";
	if (allowed & OPTION_ALL_ROWS && o->all)
		return "--all";
	return o->full_names ? "--full-names" : NULL;
}

/* Other formats have all rows, with all of their names: an option that they ignored would mislead.
 */
static int check_text(const struct options *o, __u64 allowed)
{
	bool page_of_diff = !strcmp(o->verb, "diff") || !strcmp(o->verb, "machine diff");
	const char *option = option_of_text(o, allowed);

	if (!option || !o->format || !o->format->write || page_of_diff)
		return 0;
	log_err("%s: %s is for text, and -f %s has all rows: leave out one of them", o->verb,
		option, o->format->name);
	return -EINVAL;
}

const char *options_operand(__u64 allowed, int argc, char **argv, bool *help)
{
	char letters[2 * NROWS + 3];
	struct option longs[NROWS + 1];
	int c;

	allowed |= OPTION_HELP;
	getopt_begin(allowed, letters, longs);
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		const struct option_row *r = c == '?' || c == ':' ? NULL : row_of(allowed, c);

		*help |= r && r->bit == OPTION_HELP;
	}
	return optind < argc ? argv[optind] : NULL;
}

int options_parse(struct options *o, __u64 allowed, int argc, char **argv)
{
	char letters[2 * NROWS + 3];
	struct option longs[NROWS + 1];
	int c;

	allowed |= OPTION_HELP;
	getopt_begin(allowed, letters, longs);
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == '?' || c == ':') {
			refuse(o, allowed, c, argv[optind - 1]);
			return -EINVAL;
		}
		if (take(o, allowed, row_of(allowed, c), c < LONG_FIRST, optarg) < 0)
			return -EINVAL;
	}
	if (allowed & OPTION_SLICES && o->format == format_find("html") && !o->slice_ns) {
		o->nslices = HTML_SLICES;
		o->slice_ns = HTML_SLICE_NS;
	}
	if (o->slice_ns && !o->stack_mode)
		o->stack_mode = PROFIL_STACK_AUTO;
	o->threads |= o->by == ROWS_THREAD;
	if (check_period(o) < 0 || check_tree(o) < 0 || check_text(o, allowed) < 0)
		return -EINVAL;
	if (add_operands(o, allowed, argv + optind) < 0) {
		log_err("%s: %s", o->verb, strerror(ENOMEM));
		return -EINVAL;
	}
	return 0;
}

void options_help(FILE *f, __u64 allowed)
{
	char names[256];

	allowed |= OPTION_HELP;
	for (size_t i = 0; i < NROWS; i++) {
		const struct option_row *r = &rows[i];
		char left[40], letter[8] = "   ";

		if (!(allowed & r->bit) || !r->help)
			continue;
		if (r->letter)
			snprintf(letter, sizeof(letter), "-%c,", r->letter);
		snprintf(left, sizeof(left), "%s --%s%s%s", letter, r->name,
			 r->arg && *r->arg == '[' ? "" : " ", r->arg ? r->arg : "");
		fprintf(f, "  %-26s  %s\n", left, r->help);
	}
	if (allowed & OPTION_FORMAT)
		fprintf(f, "\nA FORMAT is %s.\n", format_names(names, sizeof(names)));
}
