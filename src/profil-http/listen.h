/* listen.h - the sockets that profil-http listens on */
#ifndef PROFIL_PROFIL_HTTP_LISTEN_H
#define PROFIL_PROFIL_HTTP_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "options.h"

struct listener {
	int fd;
	bool is_tcp;
	bool is_loopback;
	char *unlink; /* path to remove at the end; NULL: none */
};

#define LISTENERS_MAX 16

struct listeners {
	struct listener listener[LISTENERS_MAX];
	size_t n;
};

/*
 * Takes the service manager's sockets and opens those of the options; without any, the default one.
 * @group becomes the group of new Unix sockets (-1: unchanged). Refuses TCP beyond loopback unless
 * the options allow it. Returns 0, or a negative errno after a message.
 */
int listeners_open(struct listeners *l, const struct options *o, gid_t group);

void listeners_close(struct listeners *l);

#endif
