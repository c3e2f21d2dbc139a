/* main.c - profilctl: the verbs, and what they are called */
#include <stdio.h>
#include <string.h>

#include "core/log.h"

#include "verb.h"

struct verb {
	const char *name;
	const char *args;
	const char *summary;
	unsigned int options;
	int (*run)(const struct options *o);
};

static const struct verb verbs[] = {
	{ "record", "[--] COMMAND [ARG...]", "run a command and profile it, with its children",
	  OPTIONS_PROFILE, verb_record },
	{ "attach", "PID...|--comm NAME|--exe FILE|--unit UNIT|--cgroup PATH",
	  "profile processes that run, until they end or Ctrl-C", OPTIONS_PROFILE | OPTIONS_SELECT,
	  verb_attach },
	{ "run", "[--] COMMAND [ARG...]",
	  "run a program that profiles itself (-pg, profil), better",
	  OPTION_RATE | OPTION_CLOCK | OPTION_SOCKET, verb_run },
	{ "top", "[PID...]", "show what is hot now, in all processes or in these", OPTIONS_TOP,
	  verb_top },
	{ "report", "FILE", "show a profile that was kept by -o", OPTIONS_REPORT, verb_report },
	{ "diff", "BEFORE AFTER", "show what changed between two profiles that were kept",
	  OPTION_JSON, verb_diff },
	{ "annotate", "FUNCTION FILE", "show a function's source and instructions with samples", 0,
	  verb_annotate },
	{ "list", "", "list what the daemon profiles", OPTION_SOCKET | OPTION_JSON, verb_list },
	{ "status", "", "show how the daemon is", OPTION_SOCKET | OPTION_JSON, verb_status },
	{ "doctor", "", "say what this machine lacks, and what cures it",
	  OPTION_SOCKET | OPTION_JSON, verb_doctor },
	{ "schema", "", "print the JSON schema of all that --json writes", 0, verb_schema },
};

#define NVERBS (sizeof(verbs) / sizeof(*verbs))

static void help(FILE *f)
{
	fputs("usage: profilctl VERB [OPTION...] [ARGUMENT...]\n\n", f);
	for (size_t i = 0; i < NVERBS; i++)
		fprintf(f, "  %-8s %s\n", verbs[i].name, verbs[i].summary);
	fputs("\n'profilctl VERB --help' lists a verb's options; 'profilctl --version' says which "
	      "one this is.\n",
	      f);
}

static void verb_help(const struct verb *v)
{
	printf("usage: profilctl %s [OPTION...]%s%s\n\nprofilctl %s: %s\n\n", v->name,
	       *v->args ? " " : "", v->args, v->name, v->summary);
	options_help(stdout, v->options);
}

static int run(const struct verb *v, int argc, char **argv)
{
	struct options o = { .verb = v->name };

	if (options_parse(&o, v->options, argc, argv) < 0)
		return CTL_USAGE;
	if (o.help) {
		verb_help(v);
		return CTL_OK;
	}
	return v->run(&o);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	log_open("profilctl");
	if (!strcmp(name, "-h") || !strcmp(name, "--help") || !strcmp(name, "help")) {
		help(stdout);
		return CTL_OK;
	}
	if (!strcmp(name, "--version")) {
		puts("profilctl " PROFIL_VERSION);
		return CTL_OK;
	}
	for (size_t i = 0; i < NVERBS; i++) {
		if (!strcmp(name, verbs[i].name))
			return run(&verbs[i], argc - 1, argv + 1);
	}
	if (*name)
		log_err("no verb is called %s; 'profilctl --help' lists them", name);
	else
		help(stderr);
	return CTL_USAGE;
}
