/* perf_map.h - reads the perf map or the jitdump in which a JIT compiler names its code */
#ifndef PROFIL_SYMBOLS_PERF_MAP_H
#define PROFIL_SYMBOLS_PERF_MAP_H

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
	char *text; /* holds the names */
	size_t held_bytes;
};

/*
 * What all maps may hold together, since their files belong to other users. A map that exceeds it
 * has no names. Tests set their own.
 */
extern size_t perfmap_bytes_max;

/*
 * Opens /tmp/perf-PID.map in the root directory of process @pid; if that has ended, in ours. The
 * file must belong to the process's user; if it has ended, to ours. Returns a descriptor or
 * -ENOENT.
 */
int perfmap_open(pid_t pid);

/*
 * The same; without a perf map, the jitdump that the process has mapped. This reads all mappings of
 * the process.
 */
int perfmap_open_any(pid_t pid);

/*
 * Reads @fd, a perf map or a jitdump, into names that are sorted and do not overlap. Skips
 * malformed lines, and all after a NUL; the last line that covers an address names it. Returns 0 or
 * a negative errno. perfmap_fini() in any case.
 */
int perfmap_read(struct perfmap *map, int fd);

void perfmap_fini(struct perfmap *map);

#endif
