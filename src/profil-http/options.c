/* options.c - profil-http's command line */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config_file.h"
#include "base/log.h"
#include "core/proto.h"
#include "options.h"
#include "profile/spool_files.h"

static const char usage[] =
	"usage: profil-http [options]\n"
	"Serves profild's profile of the whole machine over HTTP: pprof, OpenMetrics, a page.\n"
	"\n"
	"  --config FILE            read options from FILE as well\n"
	"  --listen PATH            listen on a Unix socket [" HTTP_SOCKET_DEFAULT "]\n"
	"  --listen HOST:PORT       listen on TCP, without authentication: loopback only\n"
	"  --allow-remote           allow TCP addresses beyond loopback\n"
	"  --group NAME             group whose members may read, besides root [profil]\n"
	"  --spool DIRECTORY        profiles that the page shows [" SPOOL_DIR_DEFAULT "]\n"
	"  --socket PATH            socket of profild [" PROFIL_SOCKET_DEFAULT "]\n"
	"  --max-seconds N          longest profile that a request may ask for [300]\n"
	"  --user-connections N     connections of one user at a time [128]\n"
	"  --help, --version\n";

enum {
	OPT_CONFIG = 256,
	OPT_LISTEN,
	OPT_ALLOW_REMOTE,
	OPT_GROUP,
	OPT_SOCKET,
	OPT_SPOOL,
	OPT_MAX_SECONDS,
	OPT_USER_CONNECTIONS,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option options[] = {
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "allow-remote", no_argument, NULL, OPT_ALLOW_REMOTE },
	{ "group", required_argument, NULL, OPT_GROUP },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "spool", required_argument, NULL, OPT_SPOOL },
	{ "max-seconds", required_argument, NULL, OPT_MAX_SECONDS },
	{ "user-connections", required_argument, NULL, OPT_USER_CONNECTIONS },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static int set_number(unsigned int *out, const char *name, const char *text, unsigned int max)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n < 1 || n > max) {
		log_err("--%s %s: must be a number from 1 to %u", name, text, max);
		return -EINVAL;
	}
	*out = (unsigned int)n;
	return 0;
}

static int add_listen(struct options *o, const char *where)
{
	if (o->nlisten == LISTEN_MAX) {
		log_err("--listen %s: more than %d addresses", where, LISTEN_MAX);
		return -EINVAL;
	}
	o->listen[o->nlisten++] = where;
	return 0;
}

static int read_file(struct options *o, const char *path);

static int set(struct options *o, int option, const char *value)
{
	switch (option) {
	case OPT_CONFIG:
		return read_file(o, value);
	case OPT_LISTEN:
		return add_listen(o, value);
	case OPT_ALLOW_REMOTE:
		o->allow_remote = true;
		return 0;
	case OPT_GROUP:
		o->group = value;
		return 0;
	case OPT_SOCKET:
		o->socket = value;
		return 0;
	case OPT_SPOOL:
		o->spool = value;
		return 0;
	case OPT_MAX_SECONDS:
		return set_number(&o->max_seconds, "max-seconds", value, 3600);
	case OPT_USER_CONNECTIONS:
		return set_number(&o->user_connections, "user-connections", value, 480);
	}
	return -EINVAL; /* getopt has printed a message */
}

/* A line of the file. */
static int take_line(void *options_of_file, const char *name, char *value)
{
	for (const struct option *x = options; x->name; x++) {
		if (strcmp(x->name, name) != 0 || x->val == OPT_CONFIG || x->val >= OPT_HELP)
			continue;
		if (!value == (x->has_arg == no_argument))
			return set(options_of_file, x->val, value ?: "");
		log_err("%s: takes %s value", name, value ? "no" : "one");
		return -EINVAL;
	}
	log_err("%s: not an option of the configuration file; see profil-http(8)", name);
	return -EINVAL;
}

static int read_file(struct options *o, const char *path)
{
	return config_file_read(&o->config, path, take_line, o);
}

enum options_result options_parse(struct options *o, int argc, char **argv)
{
	int option;

	*o = (struct options){ .spool = SPOOL_DIR_DEFAULT,
			       .group = "profil",
			       .max_seconds = 300,
			       .user_connections = 128 };
	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (option == OPT_HELP) {
			fputs(usage, stdout);
			return OPTIONS_DONE;
		}
		if (option == OPT_VERSION) {
			puts("profil-http " PROFIL_VERSION);
			return OPTIONS_DONE;
		}
		if (set(o, option, optarg) < 0)
			return OPTIONS_WRONG;
	}
	if (optind == argc)
		return OPTIONS_RUN;
	log_err("unexpected argument '%s' (see --help)", argv[optind]);
	return OPTIONS_WRONG;
}
