/* grace.h - waits in the background until every BPF program that runs now has ended */
#ifndef PROFIL_GRACE_H
#define PROFIL_GRACE_H

#include <systemd/sd-event.h>

struct grace;

/* @passed is called from the event loop, once for one or more calls of grace_ask() before it. */
int grace_open(struct grace **out, sd_event *event, void (*passed)(void *arg), void *arg);
struct grace *grace_close(struct grace *g);

/*
 * Asks for a grace period that begins now. One is under way at a time: call it when none is.
 * Returns 0 or a negative errno.
 */
int grace_ask(struct grace *g);

#endif
