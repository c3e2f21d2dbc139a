/* spawner.h - a small process that forks the worker processes */
#ifndef PROFIL_PROFILD_WORKER_SPAWNER_H
#define PROFIL_PROFILD_WORKER_SPAWNER_H

#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

/*
 * fork() takes the lock of each file that the caller has mapped (i_mmap_rwsem), and waits in
 * dup_mmap() while another task holds one: with 9000 processes of another user the main thread's
 * fork() took up to 117 ms. So the main thread does not fork. The spawner is forked at the daemon's
 * start, when there are few mappings to copy. It forks workers as children of the daemon
 * (CLONE_PARENT) and sends their pidfds.
 *
 * The daemon has its end of a worker's socket before the worker exists: requests wait in the
 * socket.
 *
 * Users whose connections need many workers delay their own. Each round of forks has one for each
 * account that waits for any: another user's START would come after all that were asked for before.
 */
struct spawner;

#define ACCOUNT_OF_DAEMON ((uid_t)-1)

/* A worker process that has been asked for. */
struct birth {
	struct birth *next;
	uid_t account; /* of the user whom the worker will serve, or ACCOUNT_OF_DAEMON */
	/* Takes ownership of @pidfd. -1: the fork failed; the other end of the socket is closed. */
	void (*born)(struct birth *b, int pidfd);

	/* The spawner's. */
	uint64_t round;
	int fd[2];
};

int spawner_open(struct spawner **out, sd_event *event);

/* born() is not called any more. Takes NULL; returns NULL. */
struct spawner *spawner_close(struct spawner *s);

/*
 * Asks for a worker with the socket fd[0] and the memory file fd[1]. Does not block. After 0 the
 * descriptors are the spawner's, and the event loop calls b->born().
 */
int spawner_ask(struct spawner *s, const int fd[2], struct birth *b);

#endif
