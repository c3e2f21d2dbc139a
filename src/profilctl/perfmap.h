/* perfmap.h - the names that a just-in-time compiler writes down for the code that it makes */
#ifndef PROFIL_PERFMAP_H
#define PROFIL_PERFMAP_H

#include <stddef.h>
#include <sys/types.h>
#include <linux/types.h>

struct perfmap_name {
	__u64 start; /* an address */
	__u64 bytes;
	const char *name;
};

struct perfmap {
	struct perfmap_name *name;
	size_t n;
	char *text; /* in which the names lie */
};

/*
 * Opens /tmp/perf-PID.map as process @pid sees it; of a process that has gone, as we do. One that
 * does not belong to the user of the process (ours, where it has gone) is not taken. Returns a
 * descriptor or -ENOENT.
 */
int perfmap_open(pid_t pid);

/*
 * Reads the whole of @fd; a line that is none is left out, and of two names for one address the
 * later one stays. Returns 0 or a negative errno. perfmap_fini() in any case.
 */
int perfmap_read(struct perfmap *map, int fd);

void perfmap_fini(struct perfmap *map);

#endif
