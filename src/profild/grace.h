/* grace.h - waits in the background until every BPF program that runs now has ended */
#ifndef PROFIL_GRACE_H
#define PROFIL_GRACE_H

#include <stdint.h>
#include <systemd/sd-event.h>

struct grace;

/* @passed is called from the event loop, once for one or more calls of grace_ask() before it. */
int grace_open(struct grace **out, sd_event *event, void (*passed)(void *arg), void *arg);
struct grace *grace_close(struct grace *g);

/* What is taken from an array of maps in the background: where the kernel waits just so. */
#define GRACE_DROPS 8
struct grace_drops {
	int map;
	uint32_t n;
	uint32_t key[GRACE_DROPS];
};

/*
 * Asks for a grace period that begins now, and for @drops. One is under way at a time: call it when
 * none is. Returns 0 or a negative errno.
 */
int grace_ask(struct grace *g, const struct grace_drops *drops);

#endif
