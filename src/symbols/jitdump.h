/* jitdump.h - reads a jitdump, in which a JIT compiler describes its code for perf */
#ifndef PROFIL_SYMBOLS_JITDUMP_H
#define PROFIL_SYMBOLS_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <linux/types.h>

#define JITDUMP_NAME_MAX 1024

/* Code that was written or moved at some time; what was at its addresses before is gone. */
struct jitdump_code {
	__u64 start;	   /* an address */
	__u64 bytes;	   /* 0: the record is of another kind */
	__u64 first;	   /* where it was before it moved */
	__u64 at;	   /* of its bytes in the file */
	__u64 lines_at;	   /* of its lines in the file; 0: none */
	__u64 lines_bytes; /* of these */
	__u64 frames_at;   /* of its .eh_frame in the file; 0: none */
	__u64 frames_bytes;
};

/* The code that a record describes. */
struct jitdump_load {
	__u64 number;
	__u64 at; /* of the record */
	__u64 lines_at;
	__u64 lines_bytes;
	__u64 frames_at;
	__u64 frames_bytes;
};

/* Zeroed but for @fd, it is at the first record. jitdump_fini() when done. */
struct jitdump {
	int fd;
	__u64 at;
	char name[JITDUMP_NAME_MAX]; /* of the code read last; cut, with a blank for each newline */
	__u64 lines_of;		     /* the address of the code whose lines were read last */
	struct jitdump_load ahead;   /* these, and the unwinding rules of the code that follows */
	struct jitdump_load *load;   /* by rising number, as compilers count */
	size_t loads;
};

/*
 * Opens the file that process @pid has mapped as jit-INNER.dump, where INNER is its pid in its own
 * namespace, below its root directory @root. It must belong to @owner. Returns a descriptor or
 * -ENOENT.
 */
int jitdump_open(pid_t pid, int inner, const char *root, uid_t owner);

/* Says whether @fd is a jitdump of this machine's byte order. */
bool jitdump_is(int fd);

/* When the jitdump @fd was begun, by its runtime's clock, and the ELF machine of its code. */
bool jitdump_made(int fd, __u64 *ns, __u32 *machine);

/*
 * Reads the next record into @code. Returns 1, or 0 at the end: of the file, or where no record can
 * be read.
 */
int jitdump_next(struct jitdump *d, struct jitdump_code *code);

void jitdump_fini(struct jitdump *d);

/*
 * Finds the source line at @offset of @code. Returns its number and writes its file, cut to @bytes;
 * 0: unknown.
 */
int jitdump_line(int fd, const struct jitdump_code *code, __u64 offset, char *file, size_t bytes);

#endif
