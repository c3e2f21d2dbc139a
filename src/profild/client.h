/* client.h - one connection: its messages, and its end */
#ifndef PROFIL_CLIENT_H
#define PROFIL_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/proto.h"
#include "profild.h"

struct session;

struct client {
	struct client *next;
	struct profild *daemon;
	int sock;
	sd_event_source *source;
	sd_event_source *deadline; /* until it has said something worth waiting for */
	struct ucred peer;
	int pidfd;	       /* of the peer, from before it knew the cookie */
	struct memory *memory; /* likewise; NULL where it could not be opened, or was used */
	uint8_t cookie[PROFIL_COOKIE_BYTES];

	/* The request whose regions are still coming: a struct profil_msg_start or _image. */
	uint8_t *pending;
	struct profil_msg_region *region;
	uint32_t nregions;
	uint32_t have;

	/* A reader's. */
	struct session *session;
	struct profil_msg_events *events; /* gathered, not yet sent */
	uint64_t unsent;		  /* raw ticks that found its socket full */
	bool awaits_room;		  /* in its socket, for the events */
};

/* Accepts the connection that waits at @listener. Whom we can't serve is hung up on. */
int client_accept(struct profild *d, int listener);

/* Hangs up. A reader's session ends with it. */
void client_close(struct client *c);

/* Sends a message with these descriptors; -ENOBUFS, which ends it, to a client that never reads. */
int client_send(struct client *c, const struct profil_header *h, const int *fds, unsigned int nfds);

/*
 * What the kernel tells of a reader's processes: gathered, and sent when the ring is empty. Where
 * the reader has not taken what it has, events wait for it, up to a message full of them; those
 * that are its last ones do not.
 */
void client_event(struct client *c, const struct profil_event *event);
void client_flush(struct client *c, bool last);

#endif
