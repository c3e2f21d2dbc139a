/* scripts.h - shell scripts to be observed */
#ifndef PROFIL_TEST_SCRIPTS_H
#define PROFIL_TEST_SCRIPTS_H

#include <stdint.h>

#include "observer.h"

/* For child_fork(): executes @script. */
void script_exec(const char *script);

/* Opens @o by @ask, and observes @script from its exec to its end. */
void observe_script(struct observer *o, const struct daemon *d,
		    const struct profil_msg_observe *ask, const char *script);

/* Several programs and libraries with hundreds of functions each. */
#define SCRIPT_BROAD                                                                              \
	"ls -lR /usr/share/doc | head -20000 | sort | uniq -c | gzip -9 | od | awk '{ n += NF } " \
	"END { print n }' >/dev/null; find /usr/include -type f | xargs cat | tr a-z A-Z | "      \
	"sha256sum | cut -c 1-3 >/dev/null"

/*
 * Expects that samples of SCRIPT_BROAD without a free place are counted by image. Returns their
 * number; to @all that of all samples.
 */
uint64_t scripts_without_places(const struct daemon *d, uint64_t *all);

/*
 * Observes @programs programs that run for some milliseconds and are then deleted:
 * neither process nor file exists when the table is read. An image whose notes were not in memory
 * has no build id, and none has a wrong one. Returns how many have one; to @images, how many were
 * seen.
 */
unsigned int scripts_deleted(const struct daemon *d, unsigned int programs, unsigned int *images);

#endif
