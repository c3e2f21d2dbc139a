/* jit_codes.h - the bytes and source lines of code of a JIT compiler, from its jitdump */
#ifndef PROFIL_SYMBOLS_JIT_CODES_H
#define PROFIL_SYMBOLS_JIT_CODES_H

#include "jitdump.h"
#include "profile/profile.h"

struct jit_codes;

/* Notes which jitdump @o->fd is, if it is one, so that it is found again. Returns 0 or -ENOMEM. */
int jit_codes_identify(struct object *o);

/* Reads where the code of @o is described. -ENOENT: in no jitdump, or that has been replaced. */
int jit_codes_open(struct jit_codes **out, const struct object *o);

void jit_codes_close(struct jit_codes *c);

/* The ELF machine of the code. */
__u32 jit_codes_machine(const struct jit_codes *c);

/* The newest code at @address; NULL: none. */
const struct jitdump_code *jit_codes_find(const struct jit_codes *c, __u64 address);

/*
 * Finds the source line at @address. Returns its number and writes its file, cut to @bytes; 0:
 * unknown.
 */
int jit_codes_line(const struct jit_codes *c, __u64 address, char *file, size_t bytes);

/* The newest code of a range of addresses that no later code has. */
struct jit_piece {
	__u64 start;
	__u64 end;
	const struct jitdump_code *code;
};

/* Piece @i, by address. Returns false behind the last one. */
bool jit_codes_piece(const struct jit_codes *c, size_t i, struct jit_piece *out);

/*
 * Copies the .eh_frame of @code, at most @bytes. Returns how many it has; 0: none, more than @bytes,
 * or the account of the file's owner has no time left. It pays for the time from here to
 * jit_codes_close().
 */
size_t jit_codes_frames(struct jit_codes *c, const struct jitdump_code *code, void *out,
			size_t bytes);

/* Copies the @bytes at @address, which one piece of code has. Returns how many there are. */
size_t jit_codes_read(const struct jit_codes *c, __u64 address, void *out, size_t bytes);

#endif
