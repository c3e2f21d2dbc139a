/* scope.h - locals that own what they hold, and give it away with steal() */
#ifndef PROFIL_SCOPE_H
#define PROFIL_SCOPE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define __cleanup(fn) __attribute__((__cleanup__(fn)))

/* steal(p) gives the pointer @p away; steal_fd(fd) likewise a descriptor. */
#define steal(p)                             \
	({                                   \
		__typeof__(p) stolen_ = (p); \
		(p) = NULL;                  \
		stolen_;                     \
	})
#define steal_fd(fd)                \
	({                          \
		int stolen_ = (fd); \
		(fd) = -1;          \
		stolen_;            \
	})

static inline void closep(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

#endif
