/* sync_timer.h - when counts are drained to the buffers */
#ifndef PROFIL_PROFILD_PROFILE_SYNC_TIMER_H
#define PROFIL_PROFILD_PROFILE_SYNC_TIMER_H

#include "profild/daemon.h"

/* Schedules a pass in a mirror interval unless one is due. Called after each event. */
void sync_arm(struct profild *d);

/*
 * Makes a pass over all profiles with new samples, if one is due. Returns the time to the next one
 * in ns; UINT64_MAX: none is due.
 */
uint64_t sync_run(struct profild *d);

#endif
