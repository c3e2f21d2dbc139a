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
	struct file_account *account; /* NULL: no limits */
	__u64 begun_ns;		      /* of this thread's CPU time */
};

/*
 * Opens /tmp/perf-PID.map in the root directory of process @pid; if that has ended, in ours. The
 * file must belong to the process's user; if it has ended, to ours. Returns a descriptor or
 * -ENOENT.
 */
int perfmap_open(pid_t pid);

/*
 * Opens the jitdump that the process has mapped; without one, the perf map. This reads all mappings
 * of the process.
 */
int perfmap_open_any(pid_t pid);

/*
 * Reads @fd, a perf map or a jitdump, into names that are sorted and do not overlap. Skips
 * malformed lines, and all after a NUL; the last line that covers an address names it. What the map
 * holds until perfmap_fini(), which is called in any case, and the time to read it are charged to
 * the account of the file's owner. Returns 0, -EFBIG where that may not have as much, or another
 * negative errno.
 */
int perfmap_read(struct perfmap *map, int fd);

void perfmap_fini(struct perfmap *map);

#endif
