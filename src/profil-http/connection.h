/* connection.h - the server and its connections */
#ifndef PROFIL_PROFIL_HTTP_CONNECTION_H
#define PROFIL_PROFIL_HTTP_CONNECTION_H

#include <linux/types.h>
#include <microhttpd.h>
#include <systemd/sd-event.h>

#include "access.h"
#include "graphs.h"
#include "listen.h"
#include "options.h"
#include "results.h"
#include "snapshots.h"

/*
 * A connection carries one request. The reader's time limits for sending it and for receiving the
 * response:
 */
#define REQUEST_NS 10000000000u
#define RESPONSE_NS 60000000000u
/* The time limit for making the answer, in addition to the requested seconds. */
#define ANSWER_NS 30000000000u

struct server {
	const struct options *options;
	sd_event *event;
	struct MHD_Daemon *mhd;
	sd_event_source *mhd_timer;
	sd_event_source *resumed; /* enabled when a connection is resumed, which MHD's descriptor
				     does not signal */
	sd_event_source *sweep;
	sd_event_source *due; /* when the first timed request is due for its second snapshot */
	uint64_t due_us;      /* CLOCK_BOOTTIME; UINT64_MAX: none */
	struct request *timed;
	struct access access;
	struct listeners listeners;
	sd_event_source *accept[LISTENERS_MAX];
	struct connection *connections;
	struct connection *admitted; /* passed to MHD's callback that adds it */
	struct snapshots *snapshots; /* of the machine profile */
	struct results *results;     /* from them */
	struct graphs *graphs;	     /* of the spool */
};

/* A connection of a reader. MHD owns the descriptor. */
struct connection {
	struct server *server;
	struct MHD_Connection *mhd;
	const struct listener *listener;
	struct reader reader;
	int fd;
	__u64 deadline_ns;	 /* CLOCK_MONOTONIC: then the connection is closed */
	struct request *waiting; /* the connection is suspended until the request has an answer */
	struct connection *prev, *next;
};

#endif
