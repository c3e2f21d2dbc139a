/* memory.h - the memory of one process, through descriptors that stay bound to it for good */
#ifndef PROFIL_MEMORY_H
#define PROFIL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct memory;

/*
 * Opens the address space that @pid has now. Whatever @pid execs later, or whoever has the number
 * then, this stays that address space. Returns 0 or a negative errno.
 */
int memory_open(struct memory **out, pid_t pid);
struct memory *memory_close(struct memory *m);

/* A NULL is a space that has gone. These return 0, -EFAULT where there is no such memory, or -ESRCH
 * when the whole space is gone. */
int memory_read(struct memory *m, uint64_t addr, void *buf, size_t bytes);

/* Writes only where the process itself could. */
int memory_write(struct memory *m, uint64_t addr, const void *buf, size_t bytes);
int memory_writable(struct memory *m, uint64_t addr, size_t bytes);

/*
 * Tells the image in there from whatever else the process execs, and from other processes' images,
 * but not from that of a fork: addresses that the kernel chose for it at random are in it.
 */
uint64_t memory_image(const struct memory *m);

/* What was learnt about the mappings is no longer to be trusted: once before each pass. */
void memory_forget(struct memory *m);

#endif
