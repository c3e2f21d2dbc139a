/* profild.h - the daemon's state: one of each */
#ifndef PROFIL_PROFILD_H
#define PROFIL_PROFILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "config.h"
#include "sampler.h"

struct session;
struct client;
struct allowance;

struct profild {
	struct config config;
	sd_event *event;
	struct sampler *sampler;
	struct session *sessions;
	bool anyone_over;      /* of these: see there */
	uint64_t mirror_at_ns; /* when the next pass is due; 0: never */
	struct client *clients;
	int listener;
	sd_event_source *listening;
	sd_event_source *pause; /* in which it does not: see listen.c */
	bool own_socket;	/* ours to remove, not the service manager's */
	uint64_t started_ns;
	gid_t operators; /* group profil; -1: there is none */
	struct allowance *allowances;
};

#endif
