/* cleanup.h - locals that free what they own at the end of their scope */
#ifndef PROFIL_BASE_CLEANUP_H
#define PROFIL_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define __cleanup(fn) __attribute__((__cleanup__(fn)))

/* Transfer ownership: return the pointer or descriptor, and set the variable to NULL or -1. */
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
