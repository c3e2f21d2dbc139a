/* proc_maps.h - the executable mappings of a process, from /proc/PID/maps */
#ifndef PROFIL_SYMBOLS_PROC_PROC_MAPS_H
#define PROFIL_SYMBOLS_PROC_PROC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <linux/types.h>

struct mapping {
	__u64 lo;
	__u64 hi;
	__u64 offset; /* of lo, in the file */
	__u64 dev;
	__u64 ino;	  /* 0: no file */
	const char *path; /* "": no name */
	bool deleted;	  /* the file was deleted; the path can name another file */
	__u32 object;	  /* set by the caller */
};

struct maps {
	struct mapping *mapping; /* sorted, disjoint */
	size_t n;
	char *text; /* holds the paths */
};

/*
 * Takes ownership of @text, the contents of a maps file, and keeps its executable mappings. Skips
 * malformed lines. Returns 0 or -ENOMEM.
 */
int maps_parse(struct maps *out, char *text);

/*
 * Reads those of @pid, of 16 MiB of text at most. Time beyond the usual is charged to the account
 * of the process's user. Returns 0, -ESRCH if the process has ended or has no memory, -ETIMEDOUT if
 * its user has no time left, or another negative errno.
 */
int maps_read(struct maps *out, pid_t pid);

/* The mapping that holds @pc, or NULL. */
struct mapping *maps_find(const struct maps *maps, __u64 pc);

void maps_fini(struct maps *maps);

#endif
