/* store.h - the persistent store: fds that outlive the daemon, as bpffs pins or in systemd */
#ifndef PROFIL_PROFILD_PERSIST_H
#define PROFIL_PROFILD_PERSIST_H

#include <stdbool.h>
#include <stddef.h>

struct config;
struct store;

enum store_kind {
	STORE_NONE,    /* profiles end with the daemon */
	STORE_BPFFS,   /* a directory of pins, keyed by the socket's path; SIGTERM empties it */
	STORE_MANAGER, /* systemd's fd store: kept over a restart, closed when the unit stops */
};

/* Opens the store, with the fds of an earlier daemon. */
int store_open(struct store **out, const struct config *config);
struct store *store_close(struct store *s);

/*
 * After a failed start: leaves the fds of an earlier daemon in the store for another one. Without
 * such fds this does nothing.
 */
void store_abandon(struct store *s);
enum store_kind store_kind(const struct store *s);

/*
 * store_put() stores @fd as @name (without dots), store_drop() removes it. store_take_map() and
 * store_take_link() return a new fd for one that an earlier daemon has stored, which stays in the
 * store; -ENOENT. What else has its name there is not taken: only a map that the kernel knows by
 * @kernel_name, with values of @value_bytes, or a link.
 */
int store_put(struct store *s, const char *name, int fd);
void store_drop(struct store *s, const char *name);
int store_take_map(struct store *s, const char *name, const char *kernel_name, size_t value_bytes);
int store_take_link(struct store *s, const char *name);

/* Removes all fds of an earlier daemon that this one has neither taken nor put. */
void store_sweep(struct store *s);

/* Removes all fds. */
void store_clear(struct store *s);

#endif
