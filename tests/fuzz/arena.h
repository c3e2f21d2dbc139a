/* arena.h - the only memory of ours that a daemon in our own process may be told to write to */
#ifndef PROFIL_FUZZ_ARENA_H
#define PROFIL_FUZZ_ARENA_H

#include <sys/mman.h>

#include "core/layout.h"
#include "fuzz.h"

#define ARENA_BYTES 65536
#define ARENA_REACH (1ul << 36) /* farther than 2^32 bins of 8 bytes from anywhere inside */

/* Nothing else is within reach of a buffer that begins in it. */
static inline uint64_t arena(void)
{
	static void *at;

	if (at)
		return (uintptr_t)at;
	at = mmap(NULL, ARENA_REACH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	must(at != MAP_FAILED);
	must(mprotect(at, ARENA_BYTES, PROT_READ | PROT_WRITE) == 0);
	return (uintptr_t)at;
}

/* An address for a buffer, whatever the input says; 0 stays 0. */
static inline uint64_t arena_address(uint64_t wish)
{
	return wish ? arena() + wish % ARENA_BYTES : 0;
}

#endif
