/* symbols.h - which function stands at an offset of an ELF file */
#ifndef PROFIL_SYMBOLS_H
#define PROFIL_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct symbols;

enum symbols_kind {
	SYMBOLS_NAMED, /* a symbol */
	SYMBOLS_FRAME, /* a function without a name, known from its unwind information */
	SYMBOLS_PAGE,  /* nothing is known: a page, cut short by its neighbours */
};

/* A function, or what is known in its stead, in offsets of the file. */
struct symbols_range {
	enum symbols_kind kind;
	const char *name; /* @name_len bytes of it; it lives as long as the symbols do */
	size_t name_len;
	__u64 start;
	__u64 end;  /* of the function */
	__u64 upto; /* from the offset asked up to here the answer is the same */
};

/*
 * Reads the symbols of the ELF file @fd: its own, or those that were split off it (found by build
 * id, or by the link to the debug file, from the place that @path names), or its dynamic ones.
 * Keeps no descriptor, and not @fd. -ENOEXEC where it is no ELF file.
 */
int symbols_open(struct symbols **out, int fd, const char *path);

/* Those of the vdso, which is the same in every process of this kernel. -ENOENT without one. */
int symbols_open_vdso(struct symbols **out);

/* Those of memory that is no file: of addresses, as the perf map @fd names them. */
int symbols_open_perfmap(struct symbols **out, int fd);

void symbols_close(struct symbols *s);

/* What stands at @offset. @s may be NULL: then nothing is known of anything. */
void symbols_find(struct symbols *s, __u64 offset, struct symbols_range *out);

/*
 * Says what the linker of the ELF file @fd added to the offsets of its code, and whether it is a
 * program, not a library.
 */
void symbols_layout(int fd, __u64 *vaddr, bool *program);

/* Writes the build id of the ELF file @fd in hex, at most @bytes of it; "" where it has none. */
void symbols_build_id(int fd, char *out, size_t bytes);

#endif
