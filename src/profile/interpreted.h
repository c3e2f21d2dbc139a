/* interpreted.h - the functions of one interpreted language, by their offsets in its object */
#ifndef PROFIL_PROFILE_INTERPRETED_H
#define PROFIL_PROFILE_INTERPRETED_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "base/index_slots.h"

/* A function, as the kernel has met it: core/observe_maps.h, struct profil_function. */
struct interpreted_function {
	char *name;  /* UTF-8 */
	char *file;  /* NULL: unknown */
	__u32 start; /* of its offsets */
	__u32 length;
	__u32 line;	   /* the first one */
	__u32 line_format; /* enum profil_line_format */
	__u8 *lines;	   /* its line table; NULL: it has none, or one that was too long */
	__u32 lines_bytes;
};

/* Sorted by start. Zeroed, it is empty. */
struct interpreted {
	struct interpreted_function *function;
	size_t n;
	struct index_slots slots; /* by index + 1, of interpreted_same() */
};

/* The name of enum profil_language @language, as its object is called; NULL: there is no such. */
const char *interpreted_language(__u32 language);

/* Says whether @path is the name of a language. */
bool interpreted_is_language(const char *path);

/* Adds a function; takes ownership of its texts, even on failure. Returns 0 or -ENOMEM. */
int interpreted_add(struct interpreted *i, const struct interpreted_function *f);

/* Sorts the functions; call after the last interpreted_add(). */
void interpreted_sort(struct interpreted *i);

/* A copy of the names and offsets, without files and lines; NULL: out of memory. */
struct interpreted *interpreted_copy_names(const struct interpreted *from);

/*
 * Finds the function of @i with the identity of @like: name, file and first line. Without one adds
 * a copy, at offsets behind the others'. Returns 0 or -ENOMEM.
 */
int interpreted_same(struct interpreted *i, const struct interpreted_function *like, __u32 *start);

/* The function that has @offset; NULL: none. */
const struct interpreted_function *interpreted_find(const struct interpreted *i, __u64 offset);

/* The source line of @offset in @f; its first line if the line table does not say. */
int interpreted_line(const struct interpreted_function *f, __u64 offset);

void interpreted_fini(struct interpreted *i);

/* The same for one from interpreted_copy() or calloc(); NULL is allowed. */
void interpreted_free(struct interpreted *i);

#endif
