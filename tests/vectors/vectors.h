/* vectors.h - rows that say what each dialect must do with one pc */
#ifndef PROFIL_VECTORS_H
#define PROFIL_VECTORS_H

#include <stddef.h>

#include "core/bin.h"
#include "libprofil/dialect.h"

/* From the top of the tree, where the tests run. */
#define VECTORS_GOLDEN "tests/vectors/golden.csv"
#define VECTORS_OWN "tests/vectors/own.csv"

enum vector_kind { VECTOR_NORMATIVE, VECTOR_BUGCOMPAT };

enum vector_outcome { VECTOR_COUNT, VECTOR_NONE, VECTOR_OFF, VECTOR_EINVAL };

struct vector {
	int id;
	char dialect[32];
	int row; /* of dialects[], -1: a kernel or libc of which there is none here */
	enum vector_kind kind;
	__u32 width;
	__u64 offset;
	__u64 scale;
	__u64 bufsize;
	__u64 pc;
	__u64 bin;
	enum vector_outcome outcome;
};

/*
 * Reads the rows of the file at @path into @out, which the caller frees. Fails the test where a row
 * cannot be read. Returns how many there are.
 */
size_t vectors_read(struct vector **out, const char *path);

/* Rows that libprofil must obey: normative ones, of a dialect that it has. */
int vector_binds(const struct vector *v);

/*
 * Reduces @v's offset, scale and buffer as libprofil does: VECTOR_OFF, VECTOR_EINVAL, or
 * VECTOR_COUNT, and then @x says of each pc whether and where it counts.
 */
enum vector_outcome vector_reduce(const struct vector *v, struct profil_xform *x);

/* Says whether @outcome with @bin (where it counts) is what @v demands. */
int vector_agrees(const struct vector *v, enum vector_outcome outcome, __u64 bin);

#endif
