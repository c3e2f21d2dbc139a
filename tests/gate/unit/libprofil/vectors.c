/* vectors.c - the rows of tests/vectors through libprofil's reduction and bin.h */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/vectors/vectors.h"
#include "base/cleanup.h"

static void check_row(const struct vector *v)
{
	struct profil_xform x;
	enum vector_outcome outcome = vector_reduce(v, &x);
	__u32 bin = 0;

	cr_expect(v->width == dialects[v->row].width, "row %d: a counter has %u bytes, not %u",
		  v->id, dialects[v->row].width, v->width);
	if (outcome == VECTOR_COUNT) {
		bin = profil_bin(&x, v->pc);
		outcome = bin == PROFIL_NO_BIN ? VECTOR_NONE : VECTOR_COUNT;
	}
	cr_expect(vector_agrees(v, outcome, bin),
		  "row %d (%s): outcome %d bin %u, but should be outcome %d bin %llu", v->id,
		  v->dialect, outcome, bin, v->outcome, v->bin);
}

static void check_file(const char *path)
{
	__cleanup(freep) struct vector *v = NULL;
	size_t n = vectors_read(&v, path), bound = 0;

	for (size_t i = 0; i < n; i++) {
		if (!vector_binds(&v[i]))
			continue;
		bound++;
		check_row(&v[i]);
	}
	cr_expect(bound, "%s holds no normative row", path);
}

Test(vectors, golden_rows_are_exact)
{
	check_file(VECTORS_GOLDEN);
}

Test(vectors, own_rows_are_exact)
{
	check_file(VECTORS_OWN);
}

/* The rows of V7 describe its kernel, which the dialect follows. */
Test(vectors, golden_rows_of_v7_are_exact)
{
	__cleanup(freep) struct vector *v = NULL;
	size_t n = vectors_read(&v, VECTORS_GOLDEN), seen = 0;

	for (size_t i = 0; i < n; i++) {
		if (v[i].row != DIALECT_V7)
			continue;
		seen++;
		check_row(&v[i]);
	}
	cr_expect(seen == 9, "%zu rows of v7", seen);
}

/* Every dialect has at least one row of ours. */
Test(vectors, own_rows_cover_every_dialect)
{
	__cleanup(freep) struct vector *v = NULL;
	size_t n = vectors_read(&v, VECTORS_OWN);

	for (int row = 0; row < DIALECTS; row++) {
		size_t counts = 0;

		for (size_t i = 0; i < n; i++)
			counts += v[i].row == row && v[i].outcome == VECTOR_COUNT;
		cr_expect(counts, "no counting row of %s", dialects[row].name);
	}
}
