/* source.h - a table of profild, as a source of snapshots */
#ifndef PROFIL_PROFIL_HTTP_MACHINE_SOURCE_H
#define PROFIL_PROFIL_HTTP_MACHINE_SOURCE_H

#include "table/table.h"

/*
 * The machine profile's table from when it is turned on until it is turned off, or an attachment's.
 * A restarted daemon that takes over its predecessor's machine profile has the same source.
 * Reference-counted atomically.
 */
struct source {
	int refs;
	int fd; /* the table's descriptor */
	struct table table;
};

/* Takes ownership of the table @fd, even on failure. Returns 0 or a negative errno. */
int source_open(struct source **out, int fd);

/*
 * Requests the machine profile's table from the daemon at @socket (NULL: the default). Replaces *@s
 * (NULL: none yet) if the table is another one, or by NULL with the reason in *@why if there is
 * none. Waits for the daemon. Returns 0 or a negative errno.
 */
int source_query(struct source **s, const char *socket, const char **why);

struct source *source_ref(struct source *s);
struct source *source_unref(struct source *s);

#endif
