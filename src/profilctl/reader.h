/* reader.h - a reader's connection to the daemon: requests, and the events that come unasked */
#ifndef PROFIL_READER_H
#define PROFIL_READER_H

#include <stdbool.h>

#include "core/proto.h"

struct reader;

/*
 * Connects and takes the HELLO. @path NULL: the default. Returns 0 or a negative errno, -EAGAIN
 * where the daemon has as many clients as it takes.
 */
int reader_open(struct reader **out, const char *path);

void reader_close(struct reader *r);

/* To be polled for reading. */
int reader_fd(const struct reader *r);

/*
 * The requests. Each returns the daemon's error or the connection's (-ENODATA: the daemon has
 * gone; -ETIMEDOUT: it does not answer), and 0 with its answer in @reply.
 */
int reader_attach(struct reader *r, int pidfd, int maps, __u64 period_ns, __u32 flags,
		  struct profil_msg_reply *reply);
int reader_detach(struct reader *r, struct profil_msg_reply *reply);
int reader_stats(struct reader *r, struct profil_msg_reply *reply);

/* Also puts the *@nfds descriptors that came, at most as many as it held, into @fds. */
int reader_image(struct reader *r, __u32 tgid, __u16 execs, const struct profil_msg_region *regions,
		 unsigned int nregions, int *fds, unsigned int *nfds);

/* Asks a question of no words, @type, and returns the answer: it is the reader's to keep. */
int reader_ask(struct reader *r, unsigned int type, const struct profil_header **answer);

/* Takes in what has come, without waiting. Returns 0 or -ENODATA once the daemon has gone. */
int reader_pump(struct reader *r);

/* Moves the oldest event that was taken in to @event; false: there is none. */
bool reader_next(struct reader *r, struct profil_msg_event *event);

#endif
