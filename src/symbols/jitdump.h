/* jitdump.h - reads a jitdump, in which a JIT compiler describes its code for perf */
#ifndef PROFIL_SYMBOLS_JITDUMP_H
#define PROFIL_SYMBOLS_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <linux/types.h>

#define JITDUMP_NAME_MAX 1024

/* Code that was written at some time; what was at its addresses before is gone. */
struct jitdump_code {
	__u64 start;		     /* an address */
	__u64 bytes;		     /* 0: the record is of another kind */
	char name[JITDUMP_NAME_MAX]; /* cut to fit, with a blank for each newline */
};

/* Zeroed but for @fd, it is at the first record. */
struct jitdump {
	int fd;
	__u64 at;
};

/*
 * Opens the file that process @pid has mapped as jit-INNER.dump, where INNER is its pid in its own
 * namespace, below its root directory @root. It must belong to @owner. Returns a descriptor or
 * -ENOENT.
 */
int jitdump_open(pid_t pid, int inner, const char *root, uid_t owner);

/* Says whether @fd is a jitdump of this machine's byte order. */
bool jitdump_is(int fd);

/*
 * Reads the next record into @code. Returns 1, or 0 at the end: of the file, or where no record can
 * be read. Code that was moved keeps its old address.
 */
int jitdump_next(struct jitdump *d, struct jitdump_code *code);

#endif
