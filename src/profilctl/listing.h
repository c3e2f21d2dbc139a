/* listing.h - the instructions of a function, with their samples */
#ifndef PROFIL_LISTING_H
#define PROFIL_LISTING_H

#include "spots.h"

/*
 * Calls @show for each instruction of @f, as objdump writes it. -ENOENT where its file has gone or
 * is another one by now, -ENOSYS where there is no objdump.
 */
int listing_show(const struct profile *p, const struct function *f, const struct spots *s,
		 void (*show)(void *ctx, const char *text, __u64 samples), void *ctx);

#endif
