/* arena.h - the only memory that a daemon in the fuzzer's own process may write to */
#ifndef PROFIL_FUZZ_ARENA_H
#define PROFIL_FUZZ_ARENA_H

#include <sys/mman.h>

#include "core/shared_maps.h"
#include "fuzz.h"

#define ARENA_BYTES 65536
#define ARENA_REACH (1ul << 36) /* farther than 2^32 bins of 8 bytes from anywhere inside */

/* A buffer that begins in it cannot reach other mappings: guard pages surround it. */
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

/* Maps any number of the input to an address in the arena; 0 stays 0. */
static inline uint64_t arena_address(uint64_t wish)
{
	return wish ? arena() + wish % ARENA_BYTES : 0;
}

#endif
