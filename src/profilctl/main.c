/* main.c - profilctl: finds the verb, reads its options and runs it */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "profilctl/options/option_table.h"

#include "profilctl/util/edit_distance.h"
#include "profilctl/util/terminal.h"
#include "base/truncated_file.h"
#include "profilctl/verbs/verb.h"

struct verb {
	const char *name;
	const char *args;
	const char *summary;
	__u64 options;
	int (*run)(const struct options *o);
};

static const struct verb verbs[] = {
	{ "record", "[--] COMMAND [ARG...]", "run a command and profile it, with its children",
	  OPTIONS_PROFILE | OPTION_COMMAND, verb_record },
	{ "attach", "PID...|--comm NAME|--exe FILE|--unit UNIT|--cgroup PATH|--all",
	  "profile running processes until they end, or until Ctrl-C",
	  OPTIONS_PROFILE | OPTIONS_SELECT, verb_attach },
	{ "run", "[--] COMMAND [ARG...]",
	  "run a program that profiles itself (gcc -pg, profil), with libprofil",
	  OPTION_RATE | OPTION_CLOCK | OPTION_SOCKET | OPTION_COMMAND, verb_run },
	{ "top", "[PID...]", "show the hottest functions now, of all processes or these",
	  OPTIONS_TOP, verb_top },
	{ "machine", "on|off|status|report|top|diff [A B]|spool [DIR]|push [URL]|feed",
	  "profile the whole machine all the time, in the daemon",
	  OPTIONS_REPORT | OPTIONS_VIEW | OPTIONS_TEXT | OPTION_TREE | OPTION_RATE | OPTION_SOCKET |
		  OPTION_MACHINE_DURATION | OPTION_BATCH | OPTION_COUNT | OPTION_INTERVAL |
		  OPTION_SPOOL | OPTION_KEEP | OPTION_PUSH | OPTION_CONFIG | OPTION_FEED |
		  OPTION_CALL_GRAPH,
	  verb_machine },
	{ "report", "FILE... | --since TIME [--until TIME]",
	  "show profiles kept by -o, added up, or the spool's of some time",
	  OPTIONS_REPORT | OPTIONS_VIEW | OPTIONS_TEXT | OPTION_INPUT | OPTION_TREE | OPTION_SPAN |
		  OPTION_SPOOL,
	  verb_report },
	{ "diff", "BEFORE AFTER", "compare two profiles, or two times: 02:00..03:00 03:00..04:00",
	  OPTION_OUTPUT | OPTION_FORMAT | OPTION_JSON | OPTIONS_TEXT | OPTION_SPOOL | OPTION_FAIL,
	  verb_diff },
	{ "annotate", "FUNCTION FILE...",
	  "show source and instructions of a function with their samples",
	  OPTION_INPUT | OPTION_ALL_ROWS | OPTION_FULL_NAMES | OPTION_SPOOL, verb_annotate },
	{ "optimize", "PROGRAM [PROFILE...]",
	  "write profiles of a program for its compiler, and measure whether that pays",
	  OPTION_OUTPUT | OPTION_FORMAT | OPTION_SPOOL | OPTION_CHECK, verb_optimize },
	{ "list", "", "list what the daemon profiles; --events: what -e takes",
	  OPTION_SOCKET | OPTION_JSON | OPTION_EVENTS, verb_list },
	{ "status", "", "show the state of the daemon, and limits and usage of users",
	  OPTION_SOCKET | OPTION_JSON, verb_status },
	{ "doctor", "", "check whether this machine can be profiled, with remedies",
	  OPTION_SOCKET | OPTION_JSON, verb_doctor },
	{ "interpreters", "[FILE...]",
	  "describe the installed interpreters for the machine's profile", 0, verb_interpreters },
	{ "schema", "", "print the JSON schema of what --json writes", 0, verb_schema },
};

#define NVERBS (sizeof(verbs) / sizeof(*verbs))

/* The parts of "machine": it has the options of all, each part its own. */
static const struct verb machine_verbs[] = {
	{ "machine on", "", "profile the whole machine from now on",
	  OPTION_RATE | OPTION_SOCKET | OPTION_CALL_GRAPH, verb_machine },
	{ "machine off", "", "turn the machine's profile off", OPTION_SOCKET, verb_machine },
	{ "machine status", "", "show the state of the machine's profile",
	  OPTION_SOCKET | OPTION_JSON, verb_machine },
	{ "machine report", "", "show the samples since it was turned on, or of the next time (-d)",
	  OPTIONS_REPORT | OPTIONS_VIEW | OPTIONS_TEXT | OPTION_TREE | OPTION_SOCKET |
		  OPTION_MACHINE_DURATION,
	  verb_machine },
	{ "machine top", "", "show the hottest functions now",
	  OPTION_SOCKET | OPTION_JSON | OPTION_BATCH | OPTION_COUNT | OPTION_INTERVAL,
	  verb_machine },
	{ "machine diff", "[BEFORE AFTER]",
	  "compare the samples until now with those of the next time (-d, 10 s), or two "
	  "files that 'machine report -o' has written",
	  OPTION_OUTPUT | OPTION_FORMAT | OPTION_JSON | OPTIONS_TEXT | OPTION_SPOOL |
		  OPTION_SOCKET | OPTION_MACHINE_DURATION,
	  verb_machine },
	{ "machine spool", "[DIR]",
	  "write the machine's profile to a directory, interval by interval",
	  OPTION_RATE | OPTION_SOCKET | OPTION_FORMAT | OPTION_DURATION | OPTION_INTERVAL |
		  OPTION_SPOOL | OPTION_KEEP | OPTION_CONFIG,
	  verb_machine },
	{ "machine push", "[URL]", "send the profiles of the spool by OTLP over HTTP",
	  OPTION_DURATION | OPTION_SPOOL | OPTION_PUSH | OPTION_CONFIG, verb_machine },
	{ "machine feed", "",
	  "give the machine's profile the unwind rows of what runs, for 'machine on -g'",
	  OPTION_DURATION | OPTION_SOCKET | OPTION_FEED, verb_machine },
};

#define NMACHINE (sizeof(machine_verbs) / sizeof(*machine_verbs))

static void help(FILE *f)
{
	fputs("usage: profilctl VERB [OPTION...] [ARGUMENT...]\n\n", f);
	for (size_t i = 0; i < NVERBS; i++)
		fprintf(f, "  %-8s %s\n", verbs[i].name, verbs[i].summary);
	fputs("\n'profilctl help VERB' lists the options of a verb, 'profilctl version' prints the "
	      "version.\n",
	      f);
}

/* NULL: no part has that name. */
static const struct verb *machine_part(const char *part)
{
	for (size_t i = 0; i < NMACHINE; i++) {
		if (!strcmp(machine_verbs[i].name + strlen("machine "), part))
			return &machine_verbs[i];
	}
	return NULL;
}

/* Each part has options of its own, so those of all together would name some twice. */
static void machine_help(void)
{
	const struct verb *status = machine_part("status");

	puts("usage: profilctl machine [PART] [OPTION...]\n\n"
	     "profilctl machine: profile the whole machine all the time, in the daemon\n");
	for (size_t i = 0; i < NMACHINE; i++)
		printf("  %-8s %s\n", machine_verbs[i].name + strlen("machine "),
		       machine_verbs[i].summary);
	puts("\n'profilctl help machine PART' lists the options of a part. PART is status unless "
	     "it "
	     "is\ngiven, with these options:\n");
	if (status)
		options_help(stdout, status->options);
}

static void verb_help(const struct verb *v)
{
	if (!strcmp(v->name, "machine")) {
		machine_help();
		return;
	}
	printf("usage: profilctl %s [OPTION...]%s%s\n\nprofilctl %s: %s\n\n", v->name,
	       *v->args ? " " : "", v->args, v->name, v->summary);
	options_help(stdout, v->options);
}

static const struct verb *find(const char *name)
{
	for (size_t i = 0; i < NVERBS; i++) {
		if (!strcmp(name, verbs[i].name))
			return &verbs[i];
	}
	return NULL;
}

/* The part of "machine" that the command line names: its first operand, or status. */
static const struct verb *machine_verb(const struct verb *machine, int argc, char **argv)
{
	bool help = false;
	const char *operand = options_operand(machine->options, argc, argv, &help);
	const struct verb *v = machine_part(operand ? operand : help ? "" : "status");

	return v ? v : machine;
}

/* The verb for @o: record -p means attach, as in perf. NULL after a message. */
static const struct verb *verb_for(const struct verb *v, struct options *o)
{
	if (!o->npids || v->run != verb_record)
		return v;
	if ((size_t)o->argc > o->npids) {
		log_err("record: -p excludes operands; 'profilctl attach -d SECONDS PID' profiles "
			"for so long");
		return NULL;
	}
	o->verb = "attach";
	return find("attach");
}

static int run(const struct verb *v, int argc, char **argv)
{
	struct options o = { 0 };
	int status = CTL_USAGE;

	if (v->run == verb_machine)
		v = machine_verb(v, argc, argv);
	o.verb = v->name;
	if (!options_parse(&o, v->options, argc, argv)) {
		if (o.quiet)
			log_limit(LOG_LEVEL_ERR);
		if (o.help) {
			verb_help(v);
			status = CTL_OK;
		} else {
			v = verb_for(v, &o);
			status = v ? v->run(&o) : CTL_USAGE;
		}
	}
	options_fini(&o);
	return status;
}

/* The verbs of other profilers. */
static const struct {
	const char *name, *here;
} elsewhere[] = {
	{ "stat", "record" },
	{ "script", "report -f folded" },
	{ "ps", "list" },
	{ "show", "report" },
	{ "view", "report -f html" },
	{ "flamegraph", "report -f speedscope" },
};

static int unknown(const char *name)
{
	const char *meant = NULL;
	unsigned int least = UINT32_MAX;

	for (size_t i = 0; i < NVERBS; i++) {
		unsigned int d = edit_distance(name, verbs[i].name);

		if (edit_resembles(name, verbs[i].name) && d < least) {
			least = d;
			meant = verbs[i].name;
		}
	}
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++) {
		if (!strcmp(name, elsewhere[i].name))
			meant = elsewhere[i].here;
	}
	if (*name == '-')
		log_err("invalid option %s: options follow the verb; 'profilctl --help' lists the "
			"verbs",
			name);
	else if (meant)
		log_err("unknown verb %s: did you mean 'profilctl %s'?", name, meant);
	else if (strchr(name, '/') && !access(name, X_OK))
		log_err("unknown verb %s: to profile a command, 'profilctl record -- %s'", name,
			name);
	else
		log_err("unknown verb %s; 'profilctl --help' lists the verbs", name);
	return CTL_USAGE;
}

/* Prints the help of a verb, or of a part of "machine". */
static int help_on(const char *name, const char *part)
{
	const struct verb *v = find(name);

	if (!v)
		return unknown(name);
	if (v->run == verb_machine && *part) {
		v = machine_part(part);
		if (!v) {
			log_err("machine has no part %s; 'profilctl help machine' lists them",
				part);
			return CTL_USAGE;
		}
	}
	verb_help(v);
	return CTL_OK;
}

static int run_named(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const struct verb *v;

	if (!strcmp(name, "help") && argc > 2)
		return help_on(argv[2], argc > 3 ? argv[3] : "");
	if (!strcmp(name, "-h") || !strcmp(name, "--help") || !strcmp(name, "help")) {
		help(stdout);
		return CTL_OK;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V") || !strcmp(name, "version")) {
		puts("profilctl " PROFIL_VERSION);
		return CTL_OK;
	}
	v = find(name);
	if (v)
		return run(v, argc - 1, argv + 1);
	if (*name)
		return unknown(name);
	help(stderr);
	return CTL_USAGE;
}

static void on_file_limit(int signal)
{
}

int main(int argc, char **argv)
{
	int status, err;

	/* write() fails with EFBIG. No SIG_IGN, which a command would inherit. */
	signal(SIGXFSZ, on_file_limit);
	log_open("profilctl");
	truncated_file_reads_as_zeroes();
	status = run_named(argc, argv);
	err = status ? 0 : stdout_flush();
	if (!err || err == -EPIPE)
		return status;
	log_err("cannot write standard output: %s",
		err == -EIO ? "a write has failed" : strerror(-err));
	return CTL_ERROR;
}
