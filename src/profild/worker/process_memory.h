/* process_memory.h - the memory of one process, through descriptors bound to it */
#ifndef PROFIL_PROFILD_PROFILE_PROCESS_MEMORY_H
#define PROFIL_PROFILD_PROFILE_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct memory;

/*
 * Opens the present address space of @pid. It remains bound to that address space, whatever @pid
 * execs later, and whichever process has the number then. Returns 0 or a negative errno.
 */
int memory_open(struct memory **out, pid_t pid);

/* Opens the address space of @from a second time; -ESRCH if @from is NULL. */
int memory_copy(struct memory **out, const struct memory *from);
struct memory *memory_close(struct memory *m);

/*
 * A NULL @m stands for an address space that no longer exists. These return 0, -EFAULT if the
 * address is not mapped so, or -ESRCH if the address space no longer exists.
 */
int memory_read(struct memory *m, uint64_t addr, void *buf, size_t bytes);

/* Writes only where the process itself may write. */
int memory_write(struct memory *m, uint64_t addr, const void *buf, size_t bytes);
int memory_writable(struct memory *m, uint64_t addr, size_t bytes);

/*
 * A fingerprint of the executed image: a hash of its auxv, which contains random addresses. It
 * differs after an exec and in other processes, except in forks of the same image.
 */
uint64_t memory_image(const struct memory *m);

/* Drops the cached mappings. Called before each pass. */
void memory_forget(struct memory *m);

#endif
