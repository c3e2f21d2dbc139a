/* daemon.h - the daemon that is there, or one of our own for as long as we run */
#ifndef PROFIL_DAEMON_H
#define PROFIL_DAEMON_H

#include "options.h"
#include "reader.h"

/* A profild that we have started: it ends with us. */
struct private_daemon;

/*
 * Connects to the daemon of @o; where none answers and we may load BPF, starts one, *@daemon, which
 * is else NULL. Returns an enum ctl_status, after saying what is wrong.
 */
int daemon_reach(struct reader **r, struct private_daemon **daemon, const struct options *o);

/* The same, of a daemon that is there. */
int daemon_connect(struct reader **r, const struct options *o);

/* Connects once more to what daemon_reach() has found. -ENODATA where it has gone. */
int daemon_again(struct reader **r, const struct private_daemon *daemon, const struct options *o);

/* The socket of what daemon_reach() has found. */
const char *daemon_socket(const struct private_daemon *daemon, const struct options *o);

/* Its process id; 0 where it is not ours. */
pid_t daemon_pid(const struct private_daemon *daemon);

/* Ends it and waits until it has. */
void daemon_end(struct private_daemon *daemon);

#endif
