/* file_release.h - closes the files that no process has mapped any more, and keeps the names that
 * the samples so far need
 */
#ifndef PROFIL_TABLE_FILE_RELEASE_H
#define PROFIL_TABLE_FILE_RELEASE_H

#include "symbols/symbolize_cache.h"
#include "table_reader.h"

/* Zeroed, it is ready. */
struct file_release {
	pid_t *holder; /* of each object: a process that had it mapped at the last look; 0: none */
	size_t n;
	__u64 next_ns; /* of now_ns(): when to look again */
};

/*
 * When it is time, looks through the mappings of processes, and closes the files of @r that none
 * has mapped. The names of their samples' functions go to @cache, for a file that cannot be opened
 * again. Takes at most 1 % of a CPU, apart from the reading of symbols. A deleted file stays open:
 * nothing else has its lines. So does one that was never seen mapped, where this user cannot read
 * the mappings of all processes. Returns 0 or -ENOMEM.
 */
int file_release(struct file_release *f, struct table_reader *r, struct symbolize_cache *cache);

void file_release_fini(struct file_release *f);

#endif
