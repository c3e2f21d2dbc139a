/* options.h - the options of a command line, and its operands */
#ifndef PROFIL_PROFILCTL_OPTIONS_OPTIONS_H
#define PROFIL_PROFILCTL_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <linux/types.h>

#include "symbols/proc/procfs.h"
#include "analysis/group_by.h"
#include "analysis/view.h"

#define OPTIONS_SLICES_MAX 1000
#define OPTIONS_HEADERS_MAX 16
#define OPTIONS_RATE_MIN 1
#define OPTIONS_RATE_MAX 50000
#define OPTIONS_RATE_DEFAULT 999 /* of record and attach */
/* A page: mappings consist of pages, so that a larger block could be in two. */
#define OPTIONS_PERIOD_MIN_NS (1000000000 / OPTIONS_RATE_MAX)
#define OPTIONS_PERIOD_MAX_NS (1000000000 / OPTIONS_RATE_MIN)
#define OPTIONS_ROUNDS 21 /* of optimize --check */

/* Bits for the options that a verb takes; all take -h. */
#define OPTION_RATE (1ull << 0)
#define OPTION_DURATION (1ull << 1)
#define OPTION_OUTPUT (1ull << 2)
#define OPTION_FORMAT (1ull << 3)
#define OPTION_SOCKET (1ull << 4)
#define OPTION_CLOCK (1ull << 5)
#define OPTION_USER_ONLY (1ull << 6)
#define OPTION_NO_INHERIT (1ull << 7)
#define OPTION_HELP (1ull << 8)
#define OPTION_BY (1ull << 9)
#define OPTION_JSON (1ull << 10)
#define OPTION_COMM (1ull << 11)
#define OPTION_EXE (1ull << 12)
#define OPTION_CGROUP (1ull << 13)
#define OPTION_UNIT (1ull << 14)
#define OPTION_BATCH (1ull << 15)
#define OPTION_COUNT (1ull << 16)
#define OPTION_INTERVAL (1ull << 17)
#define OPTION_SLICES (1ull << 18)
#define OPTION_THREADS (1ull << 19)
#define OPTION_PID (1ull << 20)
#define OPTION_ALL (1ull << 21)
#define OPTION_QUIET (1ull << 22)
#define OPTION_INPUT (1ull << 23)
#define OPTION_CALL_GRAPH (1ull << 24)
#define OPTION_MACHINE_DURATION (1ull << 25)
#define OPTION_ROWS (1ull << 26)
#define OPTION_LIMIT (1ull << 27)
#define OPTION_ALL_ROWS (1ull << 28)
#define OPTION_FULL_NAMES (1ull << 29)
#define OPTION_FILTER (1ull << 40)
#define OPTION_FOLD_KERNEL (1ull << 41)
#define OPTION_EVENT (1ull << 42)
#define OPTION_PERIOD (1ull << 43)
#define OPTION_EVENTS (1ull << 44)
#define OPTION_TREE (1ull << 45)
#define OPTION_KERNEL_STACKS (1ull << 46)
#define OPTION_CONTAINER (1ull << 48)
#define OPTION_PUSH (1ull << 49)
#define OPTION_CONFIG (1ull << 54)
#define OPTION_SPAN (1ull << 50)
#define OPTION_SPOOL (1ull << 51)
#define OPTION_KEEP (1ull << 52)
#define OPTION_CHECK (1ull << 53)
#define OPTION_FAIL (1ull << 55)
#define OPTION_FEED (1ull << 47)
#define OPTION_WALL (1ull << 56)
#define OPTION_WAKERS (1ull << 57)
#define OPTION_LATENCY (1ull << 58)
#define OPTION_COMMAND (1ull << 63) /* not an option: the first operand begins a command */

#define OPTIONS_TEXT (OPTION_ROWS | OPTION_LIMIT | OPTION_ALL_ROWS | OPTION_FULL_NAMES)
#define OPTIONS_VIEW (OPTION_FILTER | OPTION_FOLD_KERNEL)
#define OPTIONS_REPORT (OPTION_OUTPUT | OPTION_FORMAT | OPTION_JSON | OPTION_BY)
#define OPTIONS_PROFILE                                                                        \
	(OPTIONS_REPORT | OPTION_RATE | OPTION_DURATION | OPTION_SOCKET | OPTION_CLOCK |       \
	 OPTION_USER_ONLY | OPTION_NO_INHERIT | OPTION_SLICES | OPTION_THREADS | OPTION_PID |  \
	 OPTION_ALL | OPTION_QUIET | OPTION_CALL_GRAPH | OPTION_KERNEL_STACKS | OPTION_EVENT | \
	 OPTION_PERIOD | OPTION_WALL | OPTION_WAKERS | OPTION_LATENCY)

#define OPTIONS_SELECT (OPTION_COMM | OPTION_EXE | OPTION_CGROUP | OPTION_UNIT | OPTION_CONTAINER)
#define OPTIONS_TOP                                                                              \
	(OPTIONS_SELECT | OPTION_RATE | OPTION_SOCKET | OPTION_CLOCK | OPTION_USER_ONLY |        \
	 OPTION_JSON | OPTION_BATCH | OPTION_COUNT | OPTION_INTERVAL | OPTION_PID | OPTION_ALL | \
	 OPTION_CALL_GRAPH | OPTION_WALL)

struct format;

struct options {
	const char *verb;
	const char *socket;  /* NULL: $PROFIL_SOCKET or the default */
	const char *output;  /* NULL: standard output, but see apart; "-": standard output */
	const char *clock;   /* NULL: the daemon chooses */
	bool clock_by_event; /* -e has set it */
	const struct format *format; /* NULL: text on standard output, a profile in a file */
	enum rows_by by;	     /* of text */
	struct procfs_select select;
	bool batch;
	__u64 count;	   /* of top's screens; 0: no limit */
	__u64 interval_ns; /* between screens; 0: the default */
	__u64 rate_hz;	   /* 0: the daemon's default */
	__u64 duration_ns; /* 0: until the processes end */
	__u64 slice_ns;	   /* 0: no slices */
	size_t nslices;
	bool serves; /* a private daemon serves the command, not profilctl */
	bool user_only;
	bool no_inherit;
	bool threads;
	bool everything;   /* all processes */
	bool all;	   /* all rows of report, diff and annotate */
	bool machine;	   /* top shows the machine profile; not an option */
	const char *event; /* NULL: CPU time */
	__u64 period;	   /* events per sample, or ns of CPU time; 0: the default */
	bool events;	   /* list the known events */
	bool quiet;
	bool apart; /* if output is NULL the report goes to standard error */
	bool full_names;
	__u64 rows;	      /* at most, of text; 0: no limit */
	double least_percent; /* smallest share of a row of text; 0: the default */
	struct view_filter filter;
	bool fold_kernel;
	bool tree;	     /* print the call tree */
	const char *callers; /* print the callers of this function */
	const char *callees;
	const char *wakers; /* print what woke up threads in this function */
	bool record_wakers;
	bool chains; /* wakers are frames above those of the sleepers */
	bool kernel_stacks;
	bool native;	   /* interpreters' own frames are kept */
	__u32 stack_mode;  /* enum profil_stack_mode, with call graphs */
	const char *since; /* for time_span_parse() */
	const char *until;
	const char *spool;     /* NULL: the default */
	time_t max_age_s;      /* of a profile in the spool; 0: the default */
	__u64 max_bytes;       /* of the spool; 0: the default */
	__u64 daily_bytes;     /* to send; 0: the default */
	const char *check;     /* of optimize: a command, with {} for the program */
	const char *optimized; /* the program to compare with */
	size_t rounds;	       /* 0: the default */
	const char *endpoint;  /* of push; NULL: the environment says */
	const char *header[OPTIONS_HEADERS_MAX];
	size_t nheaders;
	const char *state;   /* the file in which push keeps what it has sent; NULL: the default */
	bool once;	     /* push ends when all is sent */
	pid_t mounts_of;     /* feed trusts what this process sees; 0: none */
	char *config;	     /* the text of --config */
	double fail_percent; /* diff fails if a share has grown by as much; 0: it does not */
	bool help;
	const char *input; /* of -i, until options_parse() makes it the last operand */
	size_t npids;	   /* number of operands from -p */
	int argc;	   /* operands: from -p, then the others, then from -i */
	char **argv;	   /* ends with NULL */
};

/* Frees what options_parse() has allocated. */
void options_fini(struct options *o);

/* Adds an operand without copying it. Returns 0 or -ENOMEM. */
int options_add(struct options *o, char *operand);

/*
 * perf takes the mode of --call-graph as the next argument, as "dwarf,8192". If @operand is one,
 * and call graphs are recorded, returns the option to give instead; NULL if not.
 */
const char *options_stack_mode(const struct options *o, const char *operand);

/* Reads a process id. Returns 0, or a negative errno after a message. */
int options_pid(pid_t *out, const char *arg);

/*
 * The CPU time of a sample that the options ask for, by a rate or as the period of cpu-clock; 0:
 * the default. Without an event.
 */
static inline __u64 options_period_ns(const struct options *o)
{
	return o->rate_hz ? (1000000000u + o->rate_hz / 2) / o->rate_hz : o->period;
}

/* The same as samples per second; 0: the default. */
static inline double options_rate(const struct options *o)
{
	return o->rate_hz ? (double)o->rate_hz : o->period ? 1e9 / (double)o->period : 0;
}

/* Says whether the event is the time that threads sleep, or all of their time. */
static inline bool options_off_cpu(const struct options *o)
{
	return o->event && !strcmp(o->event, PROFILE_OFF_CPU);
}

static inline bool options_wall(const struct options *o)
{
	return o->event && !strcmp(o->event, PROFILE_WALL);
}

/* Says whether it is the CPU's records of taken branches. */
static inline bool options_branches(const struct options *o)
{
	return o->event && !strcmp(o->event, PROFILE_BRANCHES);
}

/* Says whether it is CPU time, divided by the threads that run at the same time. */
static inline bool options_latency(const struct options *o)
{
	return o->event && !strcmp(o->event, PROFILE_LATENCY);
}

#endif
