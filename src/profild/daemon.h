/* daemon.h - the state of the daemon */
#ifndef PROFIL_PROFILD_DAEMON_H
#define PROFIL_PROFILD_DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "config.h"

struct disposal;
struct lanes;
struct own_profile;
struct own_request;
struct client;
struct attachment;
struct place_source;
struct quota;
struct retired_tables;
struct sampler;
struct writer;

struct profild {
	struct config config;
	sd_event *event;
	struct sampler *sampler;
	struct place_source *places; /* NULL: nothing can be observed */
	struct own_profile *profiles;
	struct own_profile *unborn; /* fork children that wait for counters: profile/fork_child.c */
	struct attachment *attachments;
	struct retired_tables *retired;
	struct attachment *machine;	 /* one of them; NULL: off */
	struct attachment *machine_next; /* will take its place as soon as it can count */
	sd_event_source *machine_ready;	 /* looks whether it can */
	sd_event_source *machine_timer;	 /* looks whether its table fills up */
	const struct client *feeder;	 /* may write the machine's unwind rules; NULL: none */
	struct own_profile *dirty;	 /* to be examined: see profile/own_lifecycle.c */
	struct own_request *requests;	 /* under way */
	sd_event_source *on_dirty;
	struct writer *writers;
	struct lanes *lanes;
	struct disposal *disposal;
	uint64_t sync_at_ns; /* when the next pass over all profiles is due; 0: never */
	struct client *clients;
	int listener;
	sd_event_source *listening;
	sd_event_source *pause; /* after a failure to accept: see ipc/server.c */
	bool own_socket;	/* remove it at the end: not the service manager's */
	uint64_t started_ns;
	bool ending;
	gid_t operators; /* group profil; -1: there is none */
	struct quota *quota;
};

#endif
