/* maps.h - the executable mappings of a process, as /proc/PID/maps tells them */
#ifndef PROFIL_MAPS_H
#define PROFIL_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <linux/types.h>

struct mapping {
	__u64 lo;
	__u64 hi;
	__u64 offset; /* in the file, of lo */
	__u64 dev;
	__u64 ino;	  /* 0: no file */
	const char *path; /* "" where it has no name */
	bool deleted;	  /* the path names another file by now, or none */
	__u32 object;	  /* for the owner of the maps to fill in */
};

struct maps {
	struct mapping *mapping; /* sorted, disjoint */
	size_t n;
	char *text; /* in which the paths lie */
};

/*
 * Takes over @text, the whole of a maps file, and keeps its executable mappings. What does not look
 * like a line of such a file is left out. Returns 0 or -ENOMEM.
 */
int maps_parse(struct maps *out, char *text);

/* Reads those of @pid. -ESRCH where it has no memory (any more), or another negative errno. */
int maps_read(struct maps *out, pid_t pid);

/* The mapping that holds @pc, or NULL. */
struct mapping *maps_find(const struct maps *maps, __u64 pc);

void maps_fini(struct maps *maps);

#endif
