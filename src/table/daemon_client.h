/* daemon_client.h - a connection to the daemon: requests and replies */
#ifndef PROFIL_TABLE_DAEMON_CLIENT_H
#define PROFIL_TABLE_DAEMON_CLIENT_H

#include "core/proto.h"

struct client;

/*
 * Connects and receives the HELLO. @path NULL: the default socket. Returns 0 or a negative errno,
 * -EAGAIN if the daemon has reached its limit of clients.
 */
int client_open(struct client **out, const char *path);

struct client *client_close(struct client *c);

/* Readable once the daemon has closed the connection: it sends nothing but replies. */
int client_fd(const struct client *c);

/*
 * Requests. Each returns 0 with the daemon's answer in @reply, the daemon's error, or the
 * connection's (-ENODATA: the daemon has ended; -ETIMEDOUT: it does not answer).
 */

/*
 * Starts the attachment that @m describes; fills in its header. *@table is its table, *@unwind its
 * map of unwind rules, -1 if it has none.
 */
int client_observe(struct client *c, const struct profil_msg_observe *m,
		   struct profil_msg_reply *reply, int *table, int *unwind);

/* Adds a process; @maps is a descriptor of its /proc/PID/maps. */
int client_add(struct client *c, int pidfd, int maps, struct profil_msg_reply *reply);

/* Starts counting, after an observation with PROFIL_OBSERVE_LATER. */
int client_begin(struct client *c, struct profil_msg_reply *reply);

/* Ends the attachment's counting before it returns. */
int client_detach(struct client *c, struct profil_msg_reply *reply);

/*
 * Turns the machine profile on or off or queries it, by enum profil_machine_ask; *@table is -1 if
 * it is off.
 */
int client_machine(struct client *c, __u32 ask, __u64 period_ns, struct profil_msg_reply *reply,
		   int *table);

/* Turns it on with call graphs, or changes it to them. */
int client_machine_stacks(struct client *c, __u32 stack_mode, __u64 period_ns,
			  struct profil_msg_reply *reply, int *table);

/*
 * Asks to be its feeder (PROFIL_MACHINE_FEED). *@unwind is its map of unwind rules. After -EBUSY
 * @reply->tgid is the process of the present one.
 */
int client_machine_feed(struct client *c, struct profil_msg_reply *reply, int *table, int *unwind);

/* Sends a request that consists of a header of @type. *@answer is valid until the next request. */
int client_ask(struct client *c, unsigned int type, const struct profil_header **answer);

#endif
