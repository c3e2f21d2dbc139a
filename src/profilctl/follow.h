/* follow.h - the processes of a session: what they have mapped, and where their ticks go */
#ifndef PROFIL_FOLLOW_H
#define PROFIL_FOLLOW_H

#include <stdbool.h>
#include <sys/types.h>

#include "profile.h"
#include "reader.h"

struct follow;

/*
 * Begins with process @pid, which the daemon calls @tgid, with the memory that it has now. @r and
 * @p must outlive it. Returns 0 or -ENOMEM.
 */
int follow_open(struct follow **out, struct reader *r, struct profile *p, pid_t pid, __u32 tgid);

void follow_close(struct follow *f);

/* Has the ticks of all threads kept apart: the kernel tells of each, and counts none. */
void follow_threads(struct follow *f);

/* There are so many follows: the kernel's memory for counters is shared among them. */
void follow_among(struct follow *f, size_t n);

/* Has the first process counted in the kernel at once, as one that is known to live a while. */
int follow_image(struct follow *f);

/*
 * Does what the events ask for that the reader has taken in. Returns 0, or a negative errno where
 * the session cannot go on: -ENODATA, -ENOMEM.
 */
int follow_events(struct follow *f);

/* Ends it all: no process is asked about and none is given an image from now on. */
void follow_stop(struct follow *f);

/* Says whether the first process has gone, as far as the events tell. */
bool follow_ended(const struct follow *f);

/* Says whether no other process is known to have ticks that come here. */
bool follow_alone(const struct follow *f);

/* The ticks so far: those that images hold, and those that came one by one and fell nowhere. */
__u64 follow_counted(const struct follow *f);
__u64 follow_unmatched(const struct follow *f);

/* All the ticks that came one by one. */
__u64 follow_raw(const struct follow *f);

/* Adds what the images hold now to @p, and leaves them as they are. Returns 0 or -ENOMEM. */
int follow_snapshot(const struct follow *f, struct profile *p);

/* Adds what the images hold to the profile, and lets go of them. Returns 0 or -ENOMEM. */
int follow_settle(struct follow *f);

#endif
