/* run_proto.h - messages from the libprofil inside a program to the profilctl that runs it */
#ifndef PROFIL_CORE_RUN_PROTO_H
#define PROFIL_CORE_RUN_PROTO_H

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "proto.h"

/*
 * The environment variable PROFIL_RUN holds the name of profilctl's socket and a key, of these
 * lengths. The key proves that profilctl has run the sender. Messages are datagrams without an
 * answer; SCM_CREDENTIALS says which process sent them.
 */
#define PROFIL_RUN_ENV "PROFIL_RUN"
#define PROFIL_RUN_NAME 16
#define PROFIL_RUN_KEY 16

enum profil_run_type {
	PROFIL_RUN_IMAGE = 64, /* a program has started; an earlier one in its process has ended */
	PROFIL_RUN_GRAPH,      /* fd: the memory in which the program counts calls */
	PROFIL_RUN_PROFILE,    /* the program has started a profile */
};

struct profil_run_msg {
	struct profil_header h;
	char key[PROFIL_RUN_KEY];
};
_Static_assert(sizeof(struct profil_run_msg) == 32, "on the wire");

/* An abstract address: a process can reach it from any root directory. */
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
