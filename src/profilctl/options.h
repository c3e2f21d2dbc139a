/* options.h - the command line: one table of options, of which each verb takes some */
#ifndef PROFIL_OPTIONS_H
#define PROFIL_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>
#include <linux/types.h>

#include "procfs.h"
#include "rows.h"

#define OPTIONS_SLICES_MAX 1000
#define OPTIONS_RATE_MIN 1
#define OPTIONS_RATE_MAX 50000

/* Bits that say which options a verb takes; -h is taken by all. */
enum option_bits {
	OPTION_RATE = 1 << 0,
	OPTION_DURATION = 1 << 1,
	OPTION_OUTPUT = 1 << 2,
	OPTION_FORMAT = 1 << 3,
	OPTION_SOCKET = 1 << 4,
	OPTION_CLOCK = 1 << 5,
	OPTION_USER_ONLY = 1 << 6,
	OPTION_NO_INHERIT = 1 << 7,
	OPTION_HELP = 1 << 8,
	OPTION_BY = 1 << 9,
	OPTION_JSON = 1 << 10,
	OPTION_COMM = 1 << 11,
	OPTION_EXE = 1 << 12,
	OPTION_CGROUP = 1 << 13,
	OPTION_UNIT = 1 << 14,
	OPTION_BATCH = 1 << 15,
	OPTION_COUNT = 1 << 16,
	OPTION_INTERVAL = 1 << 17,
	OPTION_SLICES = 1 << 18,
	OPTION_THREADS = 1 << 19,
};

#define OPTIONS_REPORT (OPTION_OUTPUT | OPTION_FORMAT | OPTION_JSON | OPTION_BY)
#define OPTIONS_PROFILE                                                                  \
	(OPTIONS_REPORT | OPTION_RATE | OPTION_DURATION | OPTION_SOCKET | OPTION_CLOCK | \
	 OPTION_USER_ONLY | OPTION_NO_INHERIT | OPTION_SLICES | OPTION_THREADS)

#define OPTIONS_SELECT (OPTION_COMM | OPTION_EXE | OPTION_CGROUP | OPTION_UNIT)
#define OPTIONS_TOP                                                                       \
	(OPTIONS_SELECT | OPTION_RATE | OPTION_SOCKET | OPTION_CLOCK | OPTION_USER_ONLY | \
	 OPTION_BATCH | OPTION_COUNT | OPTION_INTERVAL)

struct format;

struct options {
	const char *verb;
	const char *socket;	     /* NULL: $PROFIL_SOCKET, or the default */
	const char *output;	     /* NULL: stdout */
	const char *clock;	     /* NULL: the daemon's own choice */
	const struct format *format; /* NULL: text to stdout, a profile to a file */
	enum rows_by by;	     /* of text */
	struct procfs_select select;
	bool batch;
	__u64 count;	   /* of top's screens; 0: until it is ended */
	__u64 interval_ns; /* between them; 0: the default */
	__u64 rate_hz;	   /* 0: the daemon's */
	__u64 duration_ns; /* 0: until the target ends */
	__u64 slice_ns;	   /* 0: no slices */
	size_t nslices;
	bool serves; /* a daemon of our own profiles for the command, not for us */
	bool user_only;
	bool no_inherit;
	bool threads;
	bool help;
	int argc; /* what stands after the options */
	char **argv;
};

/*
 * Reads the options that @allowed names, up to the first word that is none. Returns 0, or -EINVAL
 * after saying on stderr what is wrong.
 */
int options_parse(struct options *o, unsigned int allowed, int argc, char **argv);

/* Reads a process id. Likewise. */
int options_pid(pid_t *out, const char *arg);

/* Lists the options that @allowed names. */
void options_help(FILE *f, unsigned int allowed);

#endif
