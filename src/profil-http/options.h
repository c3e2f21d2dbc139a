/* options.h - profil-http's command line */
#ifndef PROFIL_PROFIL_HTTP_OPTIONS_H
#define PROFIL_PROFIL_HTTP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_SOCKET_DEFAULT "/run/profil/http.sock"
#define LISTEN_MAX 8

struct options {
	const char *socket;		/* the daemon's; NULL: the default */
	const char *listen[LISTEN_MAX]; /* a path or HOST:PORT */
	size_t nlisten;
	bool allow_remote; /* TCP beyond loopback */
	const char *spool;
	const char *group; /* whose members have permission to read */
	unsigned int max_seconds;
	unsigned int user_connections;
	char *config; /* the text of --config; lives as long as the process */
};

enum options_result {
	OPTIONS_RUN,
	OPTIONS_DONE, /* --help or --version */
	OPTIONS_WRONG,
};

enum options_result options_parse(struct options *o, int argc, char **argv);

#endif
