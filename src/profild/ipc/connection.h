/* connection.h - one connection: its messages, and its end */
#ifndef PROFIL_PROFILD_IPC_CONNECTION_H
#define PROFIL_PROFILD_IPC_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/proto.h"
#include "profild/daemon.h"
#include "profild/profile/own_profile.h"
#include "profild/quota/quota.h"
#include "profild/worker/lane.h"

struct attachment;
struct client;

struct peer {
	struct ucred cred;
	bool privileged; /* see process_privileged_as() */
};

/*
 * Carries out the request at @h and answers it, now or later (see @waiting). With *@fds the
 * message carries descriptors and is still in the socket: a handler that has a worker receive it
 * (see struct task) sets *@fds to false. Returns 0, or a negative errno to close the
 * connection, because its stream is broken.
 */
typedef int client_handler(struct client *c, const struct profil_header *h, bool *fds);

struct client {
	struct client *next;
	struct profild *daemon;
	client_handler *handle;
	int sock; /* -1: closed */
	sd_event_source *source;
	sd_event_source *deadline; /* closes the connection unless it observes */
	sd_event_source *retry;	   /* of an observer's request that waits (observer.c) */
	sd_event_source *rest;	   /* the timer that ends @resting */
	bool resting;		   /* not read: its user has spent its share of the main thread */
	bool greeted;
	struct peer peer;
	struct user *user;
	struct charge charge;
	struct lane *lane;
	int pidfd; /* of the peer, from before it knew the cookie */
	struct remote
		memory;	 /* likewise; none if it could not be opened, or a START has taken it */
	uint64_t lender; /* instead of @memory: the id of the profile that has it open */
	uint8_t cookie[PROFIL_COOKIE_BYTES];
	struct task task; /* of HELLO, or of a message with unwanted descriptors */
	bool opening;	  /* until HELLO the task is queued; it keeps the struct, too */
	/*
	 * A request is answered later, by client_go_on(); nothing is read until then. A connection
	 * that is closed in between keeps the struct, with @sock -1.
	 */
	bool waiting;
	bool unread; /* the source is off: there was something to read during a wait */
	struct own_request request; /* a START, STOP or SYNC under way */

	/* A START or EXTEND whose regions have not all arrived. */
	struct profil_msg_start *pending;
	struct profil_msg_region *region;
	uint32_t nregions;
	uint32_t have;

	struct attachment *attachment; /* of an observer */
};

/*
 * Takes ownership of @sock, also on failure. The client gets its HELLO when a worker has opened its
 * process's memory.
 */
int client_open(struct profild *d, int sock, client_handler *handle);

/* Closes the connection and its attachment. Does not block, whatever is in the socket. */
void client_close(struct client *c);

/* Sends a message with descriptors; -ENOBUFS, which closes it, if the client does not read. */
int client_send(struct client *c, const struct profil_header *h, const int *fds, unsigned int nfds);

/*
 * The request under way has been answered: reads on. @err is like a handler's: not 0 closes the
 * connection.
 */
void client_go_on(struct client *c, int err);

#endif
