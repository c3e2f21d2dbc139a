/* store.h - descriptors that outlive the daemon: in bpffs, or with the service manager */
#ifndef PROFIL_STORE_H
#define PROFIL_STORE_H

#include <stdbool.h>

struct config;
struct store;

enum store_kind {
	STORE_NONE,    /* profiles end with the daemon */
	STORE_BPFFS,   /* a directory of pins, keyed by the socket's path; SIGTERM empties it */
	STORE_MANAGER, /* systemd keeps them over a restart, and closes them when the unit stops */
};

/* Finds what there is, and what an earlier daemon left there. */
int store_open(struct store **out, const struct config *config);
struct store *store_close(struct store *s);
enum store_kind store_kind(const struct store *s);

/*
 * Puts @fd there under @name, or takes it out. A descriptor that was left there is returned by
 * store_take(), the caller's from then on; -ENOENT where there is none. Names have no dots.
 */
int store_put(struct store *s, const char *name, int fd);
void store_drop(struct store *s, const char *name);
int store_take(struct store *s, const char *name);

/* Takes out what an earlier daemon left there and nobody has taken or put meanwhile. */
void store_sweep(struct store *s);

/* Takes everything out. */
void store_clear(struct store *s);

#endif
