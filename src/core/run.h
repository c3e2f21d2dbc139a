/* run.h - what processes tell the profilctl that runs them, so that no profile is lost with them */
#ifndef PROFIL_RUN_H
#define PROFIL_RUN_H

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "proto.h"

/*
 * Where profilctl hears, and the proof that who speaks is one of its own: as many characters of
 * each. Datagrams, which nobody answers; the sender is known by his credentials.
 */
#define PROFIL_RUN_ENV "PROFIL_RUN"
#define PROFIL_RUN_NAME 16
#define PROFIL_RUN_KEY 16

enum profil_run_type {
	PROFIL_RUN_IMAGE = 64, /* a program begins: what its process was before is over */
	PROFIL_RUN_GRAPH,      /* the descriptor is of the memory that it counts calls in */
};

struct profil_run_msg {
	struct profil_header h;
	char key[PROFIL_RUN_KEY];
};
_Static_assert(sizeof(struct profil_run_msg) == 32, "on the wire");

/* An abstract address, which a process that has changed its root reaches as well. */
static inline socklen_t profil_run_address(struct sockaddr_un *out, const char *name)
{
	static const char first[] = "profil-run-";

	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	memcpy(out->sun_path + 1, first, sizeof(first) - 1);
	memcpy(out->sun_path + sizeof(first), name, PROFIL_RUN_NAME);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(first) +
			   PROFIL_RUN_NAME);
}

#endif
