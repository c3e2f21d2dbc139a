/* daemon_spawn.h - connects to the running daemon, or starts a private one */
#ifndef PROFIL_PROFILCTL_COLLECT_DAEMON_SPAWN_H
#define PROFIL_PROFILCTL_COLLECT_DAEMON_SPAWN_H

#include "profilctl/options/options.h"
#include "table/daemon_client.h"

/* Inode number of the initial user namespace, on every machine (include/linux/proc_ns.h). */
#define INITIAL_USER_NS 0xeffffffdu

/* A profild that profilctl has started, and that ends with it. */
struct private_daemon;

/*
 * Connects to the daemon of @o. If none answers and profilctl has the privileges to load BPF
 * programs, starts a private one, *@daemon; otherwise *@daemon is NULL. Prints a message on failure
 * and returns an enum ctl_status.
 */
int daemon_reach(struct client **c, struct private_daemon **daemon, const struct options *o);

/* The same, but never starts a daemon. */
int daemon_connect(struct client **c, const struct options *o);

/* The socket of the daemon that daemon_reach() has connected to. */
const char *daemon_socket(const struct private_daemon *daemon, const struct options *o);

/* The process id of @daemon; 0 if that is NULL. */
pid_t daemon_pid(const struct private_daemon *daemon);

/* Ends @daemon and waits for its end. */
void daemon_end(struct private_daemon *daemon);

#endif
